const ANSWER_FIRST =
  'An endpoint has a limited time to answer completely. Answer first, and do the work afterwards.';

const BY_ERROR: Readonly<Record<string, string>> = {
  timeout: ANSWER_FIRST,
  address_forbidden:
    'The endpoint’s name leads to an address that deliveries may not go to: private networks are closed. Use a public address, or ask whoever runs Runhook to open the range.',
  dns_failed: 'Check the host name in the endpoint’s address, and that its DNS record exists.',
  connection_refused:
    'Nothing listens on that port. Check that the server runs, and the port in the address.',
  connection_reset:
    'The server or something in front of it closed the connection. Look into their logs at that time.',
  unreachable: 'Check that the server is up, and that its firewall lets Runhook in.',
  tls_untrusted:
    'Install a certificate of a known authority for this very host name, with its intermediate certificates.',
  tls_failed: 'Check that the port speaks HTTPS, with TLS 1.2 or newer.',
  invalid_response: 'Check that the port speaks HTTP, and what stands in front of the server.',
  invalid_url: 'Edit the webhook and correct its endpoint.',
};

const BY_STATUS: Readonly<Record<string, string>> = {
  '401':
    'Check that the endpoint verifies with the secret of this webhook, and that nothing in front of it asks for a login.',
  '403':
    'Check that the endpoint verifies with the secret of this webhook, and that no firewall in front of it refuses.',
  '404': 'Check the path in the endpoint’s address.',
  '405': 'Check that the endpoint takes POST, and the path in its address.',
  '410': 'The endpoint says that it is gone for good. Check the path in its address.',
  '413': 'Check how large a body the endpoint and what stands in front of it accept.',
  '415': 'The body is application/json. Check what the endpoint accepts.',
  '429': 'The endpoint limits how often it is called. Raise its limit for Runhook.',
  '502':
    'Check the host and port in the endpoint’s address, that the server is up, reachable from outside, and has a trusted certificate.',
  '503': 'The endpoint is busy or being maintained.',
  '504': ANSWER_FIRST,
};

const BY_CLASS: Readonly<Record<string, string>> = {
  '3': 'Redirects are not followed. Edit the webhook and use the address that the redirect leads to.',
  '4': 'The endpoint refused the request. Its logs say why.',
  '5': 'The endpoint had a problem of its own. Look into its logs at that time.',
};

/** What to check after an attempt that failed; null when there was no problem. */
export function answerAdvice(statusCode: string, errorCode: string | null): string | null {
  if (/^2\d\d$/.test(statusCode) && errorCode === null) return null;
  return (
    BY_ERROR[errorCode ?? ''] ??
    BY_STATUS[statusCode] ??
    BY_CLASS[statusCode.charAt(0)] ??
    'Look into the endpoint’s logs at that time.'
  );
}
