/** The fields of a failed attempt from which its cause is determined (docs/contract.md#attempts). */
export interface FailedAttempt {
  /** Status of the endpoint's response; 502 or 504 if there was no response (`errorCode` then names the failure). */
  httpStatusCode: number;
  errorCode: string | null;
  errorMessage: string | null;
  /** Header names are in lower case. */
  responseHeaders: Readonly<Record<string, string>> | null;
  responseBody: string | null;
}

/** Explains to the owner of the endpoint why an attempt failed. */
export interface Cause {
  /** Attempts with the same code fail for the same reason. */
  code: string;
  /** Names the problem, without a full stop. */
  title: string;
  /** Explains how to fix the problem. */
  advice: string;
}

interface Rule {
  code: string;
  status?: number | readonly [from: number, to: number];
  /** Error code of a failure without a response. */
  error?: string;
  message?: RegExp;
  header?: readonly [name: string, value: RegExp];
  body?: RegExp;
  /** `$1` is replaced by the first capture group of the expression for the body, the header or the message. */
  title: string;
  advice: string;
}

/** Error codes of responses: a status that is not 2xx, and a 2xx with an error. Each other code is a failure without a complete response. */
const RESPONSE_ERRORS: ReadonlySet<string> = new Set(['unsuccessful_status', 'not_accepted']);
/** Number of characters of the body that rules search: services put error texts at its beginning. */
const BODY_READ_MAX = 2_000;

const PAYLOAD_FORMAT =
  'The format of this webhook must be that of the target: edit the webhook and choose it, then resend the deliveries.';
const SIGNATURE =
  'Check that the endpoint verifies with the secret of this webhook, and that nothing in front of it requires a login.';
const TUNNEL = 'Restart the tunnel, or edit the webhook if the tunnel has a new address.';
const RESPOND_FIRST =
  'An endpoint has limited time to respond completely. Respond first, then process the event.';
const CERTIFICATE =
  'Install a certificate of a trusted authority for this host name, with its intermediate certificates.';
const RENEW = `Renew the certificate, and check why automatic renewal failed. ${CERTIFICATE}`;
const PROXY_ERROR =
  'The proxy got no valid response from the endpoint. Check that the endpoint itself is up.';

/**
 * The first rule that matches is the cause, so specific rules precede general ones. causes.test.ts has a sample of
 * each code.
 */
const RULES: readonly Rule[] = [
  // Services that expect their own payload format.
  {
    code: 'slack_no_text',
    status: 400,
    body: /^(no_text)$/,
    title: '400 $1: Slack needs a `text` field',
    advice: PAYLOAD_FORMAT,
  },
  {
    code: 'slack_payload',
    status: 400,
    body: /^(invalid_payload|invalid_attachments|invalid_blocks(?:_format)?|too_many_attachments)$/,
    title: '400 $1: Slack rejected this message',
    advice: PAYLOAD_FORMAT,
  },
  {
    code: 'slack_hook_gone',
    status: [403, 410],
    body: /^(no_service|no_team|no_active_hooks|invalid_token|channel_not_found|channel_is_archived|user_not_found|action_prohibited|posting_to_general_channel_denied|team_disabled)$/,
    title: 'Slack has disabled this address: $1',
    advice: 'Create a new incoming webhook in Slack, and edit this webhook to use its address.',
  },
  {
    code: 'discord_empty_message',
    status: 400,
    body: /"code":\s*(50006)\b/,
    title: '400 code $1: Discord needs a `content` or `embeds` field',
    advice: PAYLOAD_FORMAT,
  },
  {
    code: 'discord_hook_gone',
    status: [401, 404],
    body: /"code":\s*(10015|50027)\b/,
    title: 'Discord no longer knows this address (code $1)',
    advice: 'Create a new webhook in the channel’s settings, and edit this one to use its address.',
  },
  {
    code: 'teams_payload',
    status: 400,
    body: /^"?(Summary or Text is required|Bad payload received by generic incoming webhook|Invalid webhook request - Empty Payload)/i,
    title: 'Microsoft Teams rejected this message: $1',
    advice: PAYLOAD_FORMAT,
  },
  {
    code: 'teams_error',
    status: 200,
    body: /^Webhook message delivery failed with error: (.{1,200}?)(?: with ContextId|$)/,
    title: 'Microsoft Teams did not post the message: $1',
    advice: 'Check that the channel still exists, and that it accepts messages of the connector or workflow.',
  },
  {
    code: 'teams_two_authorizations',
    status: 400,
    body: /(DirectApiRequestHasMoreThanOneAuthorization)/,
    title: 'Azure rejects this signed address because the request has an Authorization header',
    advice: 'Edit the webhook: choose the format Microsoft Teams, or another header for the signature.',
  },
  {
    code: 'teams_unsigned_address',
    status: 401,
    body: /(DirectApiAuthorizationRequired)/,
    title: 'The address of the workflow lacks its signature',
    advice: 'Copy the complete address from the workflow, including `sig`, and edit the webhook to use it.',
  },
  {
    code: 'teams_workflow_gone',
    status: 404,
    body: /"(WorkflowNotFound)"/,
    title: 'The workflow of Microsoft Teams has been deleted',
    advice: 'Create a new workflow in Teams, and edit this webhook to use its address.',
  },
  {
    code: 'pagerduty_payload',
    status: 400,
    body: /"status":\s*"(invalid event)"/,
    title: 'PagerDuty rejected this message: $1',
    advice: PAYLOAD_FORMAT,
  },
  {
    code: 'zapier_off',
    status: 410,
    body: /(please unsubscribe me)/i,
    title: 'The Zap behind this address is switched off',
    advice: 'Switch the Zap on, or delete this webhook.',
  },
  {
    code: 'make_no_scenario',
    status: [400, 410],
    body: /(no scenario listening for this webhook)/i,
    title: 'No Make scenario is listening at this address',
    advice: 'Switch the scenario on, or delete this webhook.',
  },
  {
    code: 'n8n_not_registered',
    status: 404,
    body: /requested webhook .{0,200}is not registered/i,
    title: 'n8n has no active workflow at this address',
    advice:
      'Activate the workflow, and use its production address: the test address works for one call only.',
  },
  // Proxies and tunnels in front of an endpoint.
  {
    code: 'tunnel_offline',
    header: ['ngrok-error-code', /^(ERR_NGROK_\d+)$/],
    title: 'The ngrok tunnel is offline ($1)',
    advice: TUNNEL,
  },
  {
    code: 'challenge',
    header: ['cf-mitigated', /^(challenge)$/],
    title: 'Cloudflare requires a browser check',
    advice: 'Exempt these requests from the check: add a rule for the path, or for the signature header.',
  },
  {
    code: 'cloudflare_origin',
    status: [520, 530],
    title: 'The server behind Cloudflare cannot be reached',
    advice: 'Check that the server is up, responds in time and has a certificate that Cloudflare accepts.',
  },
  {
    code: 'aws_no_route',
    status: 403,
    body: /"message":\s*"(Missing Authentication Token)"/,
    title: 'API Gateway has no such path or method ($1)',
    advice: 'Check the path in the endpoint’s address, including the stage, and that the route accepts POST.',
  },
  {
    code: 'app_stopped',
    status: [403, 503],
    body: /(Web App - Unavailable|Error 403 - This web app is stopped|no-such-app|Application error)/i,
    title: 'The application behind this address is stopped',
    advice: 'Start it at its hosting provider.',
  },
  // No complete response.
  {
    code: 'certificate_expired',
    error: 'tls_untrusted',
    message: /it expired on (\d{4}-\d{2}-\d{2})/,
    title: 'The certificate expired on $1',
    advice: RENEW,
  },
  {
    code: 'certificate_expired',
    error: 'tls_untrusted',
    message: /(it has expired)/,
    title: 'A certificate in the chain has expired',
    advice: RENEW,
  },
  {
    code: 'certificate_name',
    error: 'tls_untrusted',
    message: /(it is for another host name)/,
    title: 'The certificate is for another host name',
    advice: CERTIFICATE,
  },
  {
    code: 'certificate_chain',
    error: 'tls_untrusted',
    message: /(its issuer is (?:unknown|not trusted))/,
    title: 'The certificate cannot be verified: $1',
    advice: `Often only the intermediate certificates are missing: configure the server to send them. ${CERTIFICATE}`,
  },
  {
    code: 'certificate_self_signed',
    error: 'tls_untrusted',
    message: /(self-signed certificate)/,
    title: 'The certificate is self-signed',
    advice: CERTIFICATE,
  },
  {
    code: 'certificate',
    error: 'tls_untrusted',
    title: 'The certificate is not trusted',
    advice: CERTIFICATE,
  },
  {
    code: 'tls_failed',
    error: 'tls_failed',
    title: 'The connection could not be encrypted',
    advice:
      'Check that the port serves HTTPS, with TLS 1.2 or later, and that it accepts the client certificate if it requires one.',
  },
  {
    code: 'timeout',
    error: 'timeout',
    message: /^Timed out after ([\d.]+ s)/,
    title: 'No complete response within $1',
    advice: RESPOND_FIRST,
  },
  { code: 'timeout', error: 'timeout', title: 'No complete response in time', advice: RESPOND_FIRST },
  {
    code: 'no_address',
    error: 'no_address',
    title: 'No usable address: check the host name, its DNS record and the port',
    advice:
      'Correct the host name and the port in the endpoint’s address. The DNS record must point to a public address.',
  },
  {
    code: 'connection_refused',
    error: 'connection_refused',
    title: 'Connection refused: nothing is listening on that port',
    advice: 'Check that the server is running, and the port in the address.',
  },
  {
    code: 'connection_reset',
    error: 'connection_reset',
    title: 'The connection was closed before the response was complete',
    advice: 'The server or a proxy in front of it closed the connection. Check their logs at that time.',
  },
  {
    code: 'unreachable',
    error: 'unreachable',
    title: 'The endpoint cannot be reached',
    advice: 'Check that the server is up, and that its firewall allows Runhook.',
  },
  {
    code: 'invalid_response',
    error: 'invalid_response',
    title: 'The response is not valid HTTP',
    advice: 'Check that the port serves HTTP, and check any proxy in front of the server.',
  },
  {
    code: 'https_required',
    error: 'invalid_url',
    message: /(must use https)/,
    title: 'The endpoint’s address does not use https',
    advice: 'This service sends to https addresses only. Edit the webhook and use one.',
  },
  {
    code: 'invalid_url',
    error: 'invalid_url',
    title: 'The endpoint’s address is not valid',
    advice: 'Edit the webhook and correct its endpoint.',
  },
  {
    code: 'request_failed',
    error: 'request_failed',
    title: 'The request could not be sent',
    advice: 'Check the logs of the endpoint and of Runhook at that time.',
  },
  // Responses, by status.
  {
    code: 'not_accepted',
    error: 'not_accepted',
    message: /^(.{1,200})/,
    title: '$1',
    advice: 'Check the endpoint’s address and the format of the webhook.',
  },
  {
    code: 'redirect',
    status: [300, 399],
    header: ['location', /^(.{1,200})/],
    title: 'The endpoint redirects to $1',
    advice: 'Redirects are not followed. Edit the webhook and use the address in the redirect.',
  },
  {
    code: 'redirect',
    status: [300, 399],
    title: 'The endpoint redirects',
    advice: 'Redirects are not followed. Edit the webhook and use the address in the redirect.',
  },
  {
    code: 'bad_request',
    status: 400,
    title: 'The endpoint rejected the request',
    advice: 'Check the endpoint’s logs and its response for the reason.',
  },
  {
    code: 'unauthorized',
    status: 401,
    title: 'The endpoint did not accept the signature',
    advice: SIGNATURE,
  },
  {
    code: 'forbidden',
    status: 403,
    title: 'The endpoint forbids the request',
    advice: `Check that no firewall in front of the endpoint blocks the request. ${SIGNATURE}`,
  },
  {
    code: 'not_found',
    status: 404,
    title: 'The path does not exist',
    advice: 'Check the path in the endpoint’s address.',
  },
  {
    code: 'method_not_allowed',
    status: 405,
    title: 'The endpoint does not accept POST',
    advice: 'Check that the endpoint accepts POST, and the path in its address.',
  },
  {
    code: 'gone',
    status: 410,
    // Matches every body: only titles of rules by status alone get the status prepended, and this title contains it.
    body: /^/,
    title: '410 Gone: the endpoint has been removed',
    advice: 'Check the path in the endpoint’s address, or delete this webhook.',
  },
  {
    code: 'too_large',
    status: 413,
    title: 'The body is too large for the endpoint',
    advice: 'Check the body size limits of the endpoint and of any proxy in front of it.',
  },
  {
    code: 'media_type',
    status: 415,
    title: 'The endpoint does not accept JSON',
    advice: 'The body is application/json. Check which types the endpoint accepts.',
  },
  {
    code: 'unprocessable',
    status: 422,
    title: 'The endpoint could not process the body',
    advice: 'Check the endpoint’s logs and its response for the field that is missing or wrong.',
  },
  {
    code: 'too_many_requests',
    status: 429,
    title: 'Rate limited',
    advice: 'Raise the rate limit of the endpoint for Runhook.',
  },
  {
    code: 'rejected',
    status: [400, 499],
    title: 'The endpoint rejected the request',
    advice: 'Check the endpoint’s logs for the reason.',
  },
  {
    code: 'internal_error',
    status: 500,
    title: 'The endpoint returned a server error',
    advice: 'The endpoint had an internal error. Check its logs at that time.',
  },
  {
    code: 'bad_gateway',
    status: 502,
    title: 'The proxy in front of the endpoint could not reach it',
    advice: PROXY_ERROR,
  },
  {
    code: 'unavailable',
    status: 503,
    title: 'The endpoint is unavailable',
    advice: 'It may be overloaded or in maintenance. Check its status.',
  },
  {
    code: 'gateway_timeout',
    status: 504,
    title: 'The proxy in front of the endpoint got no response in time',
    advice: `${PROXY_ERROR} ${RESPOND_FIRST}`,
  },
  {
    code: 'server_error',
    status: [500, 599],
    title: 'The endpoint returned a server error',
    advice: 'The endpoint had an internal error. Check its logs at that time.',
  },
];

/** Every code that {@link findCause} can return, without duplicates. */
export const CAUSE_CODES: readonly string[] = [...new Set([...RULES.map(({ code }) => code), 'unknown'])];

/** Returns the cause of a failed attempt. Titles of rules that match only by status begin with the status. */
export function findCause(attempt: FailedAttempt): Cause {
  for (const rule of RULES) {
    const captured = matchRule(rule, attempt);
    if (captured === null) continue;
    const { code, title, advice } = rule;
    const isGeneral = rule.body === undefined && rule.header === undefined && rule.status !== undefined;
    const fullTitle = isGeneral ? `${attempt.httpStatusCode}: ${lowerFirst(title)}` : title;
    return { code, title: fullTitle.replace('$1', () => captured), advice };
  }
  return { code: 'unknown', title: 'Unknown failure', advice: 'Check the endpoint’s logs at that time.' };
}

/** Returns the text that the rule captured ('' without a capture group), or null if the rule does not match. */
function matchRule(rule: Rule, attempt: FailedAttempt): string | null {
  const { httpStatusCode, errorCode, errorMessage, responseHeaders, responseBody } = attempt;
  const isResponse = errorCode === null || RESPONSE_ERRORS.has(errorCode);
  if (rule.error === undefined ? !isResponse : errorCode !== rule.error) return null;
  if (rule.status !== undefined) {
    const [from, to] = typeof rule.status === 'number' ? [rule.status, rule.status] : rule.status;
    if (httpStatusCode < from || httpStatusCode > to) return null;
  }
  let captured = '';
  const checks: readonly [RegExp | undefined, string][] = [
    [rule.message, errorMessage ?? ''],
    [rule.header?.[1], responseHeaders?.[rule.header?.[0] ?? ''] ?? ''],
    [rule.body, (responseBody ?? '').slice(0, BODY_READ_MAX).trim()],
  ];
  for (const [expression, text] of checks) {
    if (expression === undefined) continue;
    const match = expression.exec(text);
    if (match === null) return null;
    captured = match[1] ?? captured;
  }
  return captured;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
