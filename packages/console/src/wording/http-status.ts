/** Meaning of a state, which determines its colour and icon. The text is always shown as well. */
export type Tone = 'good' | 'bad' | 'waiting' | 'neutral';

const NEVER_TRIGGERED = '0';

/** Reason phrases of RFC 9110, and of other statuses that endpoints return. */
const REASONS: Readonly<Record<string, string>> = {
  '200': 'OK',
  '201': 'Created',
  '202': 'Accepted',
  '203': 'Non-authoritative information',
  '204': 'No content',
  '205': 'Reset content',
  '206': 'Partial content',
  '301': 'Moved permanently',
  '302': 'Found',
  '303': 'See other',
  '304': 'Not modified',
  '307': 'Temporary redirect',
  '308': 'Permanent redirect',
  '400': 'Bad request',
  '401': 'Unauthorized',
  '402': 'Payment required',
  '403': 'Forbidden',
  '404': 'Not found',
  '405': 'Method not allowed',
  '406': 'Not acceptable',
  '408': 'Request timeout',
  '409': 'Conflict',
  '410': 'Gone',
  '411': 'Length required',
  '412': 'Precondition failed',
  '413': 'Content too large',
  '414': 'URI too long',
  '415': 'Unsupported media type',
  '418': 'I’m a teapot',
  '421': 'Misdirected request',
  '422': 'Unprocessable content',
  '423': 'Locked',
  '425': 'Too early',
  '426': 'Upgrade required',
  '428': 'Precondition required',
  '429': 'Too many requests',
  '431': 'Headers too large',
  '451': 'Unavailable for legal reasons',
  '500': 'Internal server error',
  '501': 'Not implemented',
  '502': 'Bad gateway',
  '503': 'Service unavailable',
  '504': 'Gateway timeout',
  '505': 'HTTP version not supported',
  '507': 'Insufficient storage',
  '508': 'Loop detected',
  '511': 'Network authentication required',
};

const CLASSES: Readonly<Record<string, string>> = {
  '1': 'Informational',
  '2': 'Success',
  '3': 'Redirect',
  '4': 'Client error',
  '5': 'Server error',
};

/** Error code of an attempt that failed with a status of the endpoint. */
const UNSUCCESSFUL_STATUS = 'unsuccessful_status';

const UNREACHABLE_TEXT = 'could not be reached';

/** Texts for error codes other than that of a status (docs/contract.md#attempts). */
const ERROR_TEXTS: Readonly<Record<string, string>> = {
  not_accepted: 'but not accepted',
  timeout: 'timed out',
  connection_reset: 'connection closed',
  tls_untrusted: 'certificate not trusted',
  tls_failed: 'TLS failed',
  invalid_response: 'invalid response',
  invalid_url: 'invalid address',
  request_failed: 'could not be sent',
};

/** Error codes of attempts, the most frequent first (docs/contract.md#attempts). */
export const ERROR_CODES = [
  UNSUCCESSFUL_STATUS,
  'not_accepted',
  'timeout',
  'connection_refused',
  'connection_reset',
  'unreachable',
  'no_address',
  'tls_untrusted',
  'tls_failed',
  'invalid_response',
  'invalid_url',
  'request_failed',
] as const;

/**
 * Formats a status: "200 OK", "504 timed out"; "0" is "never triggered" (docs/contract.md#subscriptions).
 * @param errorCode recorded error code; null for a success, and for failures that were recorded before codes were stored
 */
export function formatStatus(code: string, errorCode: string | null): string {
  if (code === NEVER_TRIGGERED || code === '') return 'never triggered';
  if (errorCode !== null && errorCode !== UNSUCCESSFUL_STATUS)
    return `${code} ${ERROR_TEXTS[errorCode] ?? UNREACHABLE_TEXT}`;
  // The origin of the status was not recorded.
  if (errorCode === null && (code === '502' || code === '504')) return code;
  const reason = REASONS[code] ?? CLASSES[code.charAt(0)];
  return reason === undefined ? code : `${code} ${reason}`;
}

/** Only a 2xx is a success; a redirect is a failure. */
export function statusTone(code: string): Tone {
  if (code === NEVER_TRIGGERED || code === '') return 'neutral';
  return /^2\d\d$/.test(code) ? 'good' : 'bad';
}
