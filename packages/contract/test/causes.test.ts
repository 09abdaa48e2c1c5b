import { expect, test } from '@jest/globals';
import { CAUSE_CODES, type FailedAttempt, findCause } from '../src/causes.ts';

const withResponse = (
  httpStatusCode: number,
  responseBody = '',
  responseHeaders: Record<string, string> = {},
): FailedAttempt => ({
  httpStatusCode,
  errorCode: 'unsuccessful_status',
  errorMessage: `The endpoint responded with ${httpStatusCode}.`,
  responseHeaders,
  responseBody,
});

/** A 2xx that is a failure for the format of the webhook. */
const withNotAccepted = (responseBody: string): FailedAttempt => ({
  ...withResponse(200, responseBody),
  errorCode: 'not_accepted',
  errorMessage: `Teams responded with 200 and an error: ${responseBody}`,
});

const withoutResponse = (errorCode: string, errorMessage = ''): FailedAttempt => ({
  httpStatusCode: errorCode === 'timeout' ? 504 : 502,
  errorCode,
  errorMessage,
  responseHeaders: null,
  responseBody: null,
});

const untrusted = (problem: string) =>
  withoutResponse('tls_untrusted', `The certificate is not trusted: ${problem}.`);

const SAMPLES: [code: string, title: string, attempt: FailedAttempt][] = [
  ['slack_no_text', '400 no_text: Slack needs a `text` field', withResponse(400, 'no_text')],
  [
    'slack_payload',
    '400 invalid_payload: Slack rejected this message',
    withResponse(400, 'invalid_payload\n'),
  ],
  ['slack_hook_gone', 'Slack has disabled this address: no_service', withResponse(404, 'no_service')],
  [
    'slack_hook_gone',
    'Slack has disabled this address: channel_is_archived',
    withResponse(410, 'channel_is_archived'),
  ],
  [
    'discord_empty_message',
    '400 code 50006: Discord needs a `content` or `embeds` field',
    withResponse(400, '{"message": "Cannot send an empty message", "code": 50006}'),
  ],
  [
    'discord_hook_gone',
    'Discord no longer knows this address (code 10015)',
    withResponse(404, '{"message": "Unknown Webhook", "code": 10015}'),
  ],
  [
    'teams_payload',
    'Microsoft Teams rejected this message: Summary or Text is required',
    withResponse(400, 'Summary or Text is required.'),
  ],
  [
    'teams_error',
    'Microsoft Teams did not post the message: Microsoft Teams endpoint returned HTTP error 429',
    withNotAccepted(
      'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId x',
    ),
  ],
  [
    'teams_two_authorizations',
    'Azure rejects this signed address because the request has an Authorization header',
    withResponse(400, '{"error":{"code":"DirectApiRequestHasMoreThanOneAuthorization"}}'),
  ],
  [
    'teams_unsigned_address',
    'The address of the workflow lacks its signature',
    withResponse(401, '{"error":{"code":"DirectApiAuthorizationRequired"}}'),
  ],
  [
    'teams_workflow_gone',
    'The workflow of Microsoft Teams has been deleted',
    withResponse(404, '{"error":{"code":"WorkflowNotFound"}}'),
  ],
  ['not_accepted', 'Teams responded with 200 and an error: no', withNotAccepted('no')],
  [
    'pagerduty_payload',
    'PagerDuty rejected this message: invalid event',
    withResponse(
      400,
      '{"status":"invalid event","message":"Event object is invalid","errors":["Length of …"]}',
    ),
  ],
  [
    'zapier_off',
    'The Zap behind this address is switched off',
    withResponse(410, '{"status": "please unsubscribe me!"}'),
  ],
  [
    'make_no_scenario',
    'No Make scenario is listening at this address',
    withResponse(410, 'There is no scenario listening for this webhook.'),
  ],
  [
    'n8n_not_registered',
    'n8n has no active workflow at this address',
    withResponse(404, '{"code":404,"message":"The requested webhook \\"runs\\" is not registered."}'),
  ],
  [
    'tunnel_offline',
    'The ngrok tunnel is offline (ERR_NGROK_3200)',
    withResponse(404, '<!DOCTYPE html>', { 'ngrok-error-code': 'ERR_NGROK_3200' }),
  ],
  [
    'challenge',
    'Cloudflare requires a browser check',
    withResponse(403, '<html>', { 'cf-mitigated': 'challenge' }),
  ],
  ['cloudflare_origin', '522: the server behind Cloudflare cannot be reached', withResponse(522)],
  [
    'aws_no_route',
    'API Gateway has no such path or method (Missing Authentication Token)',
    withResponse(403, '{"message":"Missing Authentication Token"}'),
  ],
  [
    'app_stopped',
    'The application behind this address is stopped',
    withResponse(503, '<h1>Application error</h1>'),
  ],
  ['certificate_expired', 'The certificate expired on 2026-11-20', untrusted('it expired on 2026-11-20')],
  ['certificate_expired', 'A certificate in the chain has expired', untrusted('it has expired')],
  ['certificate_name', 'The certificate is for another host name', untrusted('it is for another host name')],
  [
    'certificate_chain',
    'The certificate cannot be verified: its issuer is unknown',
    untrusted('its issuer is unknown'),
  ],
  ['certificate_self_signed', 'The certificate is self-signed', untrusted('self-signed certificate')],
  ['certificate', 'The certificate is not trusted', untrusted('it was revoked')],
  ['tls_failed', 'The connection could not be encrypted', withoutResponse('tls_failed')],
  ['timeout', 'No complete response within 10 s', withoutResponse('timeout', 'Timed out after 10 s.')],
  ['timeout', 'No complete response in time', withoutResponse('timeout', 'The connection timed out.')],
  [
    'no_address',
    'No usable address: check the host name, its DNS record and the port',
    withoutResponse('no_address'),
  ],
  [
    'connection_refused',
    'Connection refused: nothing is listening on that port',
    withoutResponse('connection_refused'),
  ],
  [
    'connection_reset',
    'The connection was closed before the response was complete',
    withoutResponse('connection_reset'),
  ],
  ['unreachable', 'The endpoint cannot be reached', withoutResponse('unreachable')],
  ['invalid_response', 'The response is not valid HTTP', withoutResponse('invalid_response')],
  [
    'https_required',
    'The endpoint’s address does not use https',
    withoutResponse('invalid_url', 'The URL must use https: this service sends to no other endpoints.'),
  ],
  ['invalid_url', 'The endpoint’s address is not valid', withoutResponse('invalid_url')],
  ['request_failed', 'The request could not be sent', withoutResponse('request_failed')],
  [
    'redirect',
    'The endpoint redirects to https://example.com/hooks/',
    withResponse(308, '', { location: 'https://example.com/hooks/' }),
  ],
  ['redirect', '301: the endpoint redirects', withResponse(301)],
  ['bad_request', '400: the endpoint rejected the request', withResponse(400, '{"error":"who are you"}')],
  ['unauthorized', '401: the endpoint did not accept the signature', withResponse(401)],
  ['forbidden', '403: the endpoint forbids the request', withResponse(403, 'no')],
  ['not_found', '404: the path does not exist', withResponse(404)],
  ['method_not_allowed', '405: the endpoint does not accept POST', withResponse(405)],
  ['gone', '410 Gone: the endpoint has been removed', withResponse(410)],
  ['too_large', '413: the body is too large for the endpoint', withResponse(413)],
  ['media_type', '415: the endpoint does not accept JSON', withResponse(415)],
  ['unprocessable', '422: the endpoint could not process the body', withResponse(422)],
  ['too_many_requests', '429: rate limited', withResponse(429)],
  ['rejected', '418: the endpoint rejected the request', withResponse(418)],
  ['internal_error', '500: the endpoint returned a server error', withResponse(500, 'Slack said no_text')],
  ['bad_gateway', '502: the proxy in front of the endpoint could not reach it', withResponse(502)],
  ['unavailable', '503: the endpoint is unavailable', withResponse(503)],
  ['gateway_timeout', '504: the proxy in front of the endpoint got no response in time', withResponse(504)],
  ['server_error', '507: the endpoint returned a server error', withResponse(507)],
  ['unknown', 'Unknown failure', withoutResponse('something_new')],
];

test.each(SAMPLES)('a failed attempt has the cause %s with the title "%s"', (code, title, attempt) => {
  const cause = findCause(attempt);
  expect(cause).toMatchObject({ code, title });
  expect(cause.advice).toMatch(/\.$/);
});

test('every cause has a sample in this file', () => {
  expect([...new Set(SAMPLES.map(([code]) => code))].sort()).toEqual([...CAUSE_CODES].sort());
});

test('the error text of a service is ignored inside of another sentence and after the first 2,000 characters of the body', () => {
  expect(findCause(withResponse(400, 'the field no_text is missing')).code).toBe('bad_request');
  expect(
    findCause(withResponse(410, `${' '.repeat(10)}${'x'.repeat(5_000)}please unsubscribe me`)).code,
  ).toBe('gone');
  expect(
    findCause({ ...withoutResponse('timeout'), responseBody: 'no_text', httpStatusCode: 400 }).code,
  ).toBe('timeout');
});
