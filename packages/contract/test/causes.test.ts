import { expect, test } from '@jest/globals';
import { CAUSE_CODES, causeOf, type FailedAttempt } from '../src/causes.ts';

const answered = (
  httpStatusCode: number,
  responseBody = '',
  responseHeaders: Record<string, string> = {},
): FailedAttempt => ({
  httpStatusCode,
  errorCode: 'unsuccessful_status',
  errorMessage: `The endpoint answered ${httpStatusCode}.`,
  responseHeaders,
  responseBody,
});

const unanswered = (errorCode: string, errorMessage = ''): FailedAttempt => ({
  httpStatusCode: errorCode === 'timeout' ? 504 : 502,
  errorCode,
  errorMessage,
  responseHeaders: null,
  responseBody: null,
});

const untrusted = (problem: string) =>
  unanswered('tls_untrusted', `The certificate is not trusted: ${problem}.`);

const SAMPLES: [code: string, title: string, attempt: FailedAttempt][] = [
  ['slack_no_text', '400 no_text: Slack needs a `text` field', answered(400, 'no_text')],
  [
    'slack_payload',
    '400 invalid_payload: Slack does not take this message',
    answered(400, 'invalid_payload\n'),
  ],
  ['slack_hook_gone', 'Slack has closed this address: no_service', answered(404, 'no_service')],
  [
    'slack_hook_gone',
    'Slack has closed this address: channel_is_archived',
    answered(410, 'channel_is_archived'),
  ],
  [
    'discord_empty_message',
    '400 code 50006: Discord needs a `content` or `embeds` field',
    answered(400, '{"message": "Cannot send an empty message", "code": 50006}'),
  ],
  [
    'discord_hook_gone',
    'Discord does not know this address any more (code 10015)',
    answered(404, '{"message": "Unknown Webhook", "code": 10015}'),
  ],
  [
    'teams_payload',
    'Microsoft Teams does not take this message: Summary or Text is required',
    answered(400, 'Summary or Text is required.'),
  ],
  [
    'pagerduty_payload',
    'PagerDuty does not take this message: invalid event',
    answered(400, '{"status":"invalid event","message":"Event object is invalid","errors":["Length of …"]}'),
  ],
  [
    'zapier_off',
    'The Zap behind this address is switched off',
    answered(410, '{"status": "please unsubscribe me!"}'),
  ],
  [
    'make_no_scenario',
    'No scenario of Make listens at this address',
    answered(410, 'There is no scenario listening for this webhook.'),
  ],
  [
    'n8n_not_registered',
    'n8n has no active workflow at this address',
    answered(404, '{"code":404,"message":"The requested webhook \\"runs\\" is not registered."}'),
  ],
  [
    'tunnel_offline',
    'The ngrok tunnel is not there (ERR_NGROK_3200)',
    answered(404, '<!DOCTYPE html>', { 'ngrok-error-code': 'ERR_NGROK_3200' }),
  ],
  [
    'challenge',
    'Cloudflare asks for a browser check',
    answered(403, '<html>', { 'cf-mitigated': 'challenge' }),
  ],
  ['cloudflare_origin', '522: the server behind Cloudflare cannot be reached', answered(522)],
  [
    'aws_no_route',
    'API Gateway has no such path or method (Missing Authentication Token)',
    answered(403, '{"message":"Missing Authentication Token"}'),
  ],
  [
    'app_stopped',
    'The application behind this address is stopped',
    answered(503, '<h1>Application error</h1>'),
  ],
  ['certificate_expired', 'The certificate expired on 2026-11-20', untrusted('it expired on 2026-11-20')],
  ['certificate_expired', 'A certificate of its chain has expired', untrusted('it has expired')],
  ['certificate_name', 'The certificate is for another host name', untrusted('it is for another host name')],
  [
    'certificate_chain',
    'The certificate cannot be checked: its issuer is unknown',
    untrusted('its issuer is unknown'),
  ],
  ['certificate_self_signed', 'The certificate is self-signed', untrusted('self-signed certificate')],
  ['certificate', 'The certificate is not trusted', untrusted('it was revoked')],
  ['tls_failed', 'The connection could not be encrypted', unanswered('tls_failed')],
  ['timeout', 'It does not answer within 10 s', unanswered('timeout', 'Timed out after 10 s.')],
  ['timeout', 'It does not answer in time', unanswered('timeout', 'The connection timed out.')],
  [
    'address_forbidden',
    'Its name leads to an address that may not be called',
    unanswered('address_forbidden'),
  ],
  ['port_forbidden', 'Its port may not be called', unanswered('port_forbidden')],
  ['dns_failed', 'Its host name has no address', unanswered('dns_failed')],
  ['no_address', 'It has no address that may be called', unanswered('no_address')],
  [
    'connection_refused',
    'Nothing listens there: the connection is refused',
    unanswered('connection_refused'),
  ],
  ['connection_reset', 'It closes the connection before it has answered', unanswered('connection_reset')],
  ['unreachable', 'It cannot be reached', unanswered('unreachable')],
  ['invalid_response', 'What it answers is no HTTP', unanswered('invalid_response')],
  ['invalid_url', 'Its address is not valid', unanswered('invalid_url')],
  ['request_failed', 'The request could not be sent', unanswered('request_failed')],
  [
    'redirect',
    'It redirects to https://example.com/hooks/',
    answered(308, '', { location: 'https://example.com/hooks/' }),
  ],
  ['redirect', '301: it redirects', answered(301)],
  ['bad_request', '400: it refuses the request', answered(400, '{"error":"who are you"}')],
  ['unauthorized', '401: it does not accept the signature', answered(401)],
  ['forbidden', '403: it forbids the request', answered(403, 'no')],
  ['not_found', '404: there is nothing at its path', answered(404)],
  ['method_not_allowed', '405: it does not take POST there', answered(405)],
  ['gone', '410: it says that it is gone for good', answered(410)],
  ['too_large', '413: the body is too large for it', answered(413)],
  ['media_type', '415: it does not take JSON', answered(415)],
  ['unprocessable', '422: it does not understand the body', answered(422)],
  ['too_many_requests', '429: it limits how often it is called', answered(429)],
  ['refused', '418: it refuses the request', answered(418)],
  ['internal_error', '500: it fails with an error of its own', answered(500, 'Slack said no_text')],
  ['bad_gateway', '502: what stands before it cannot reach it', answered(502)],
  ['unavailable', '503: it says that it is not available', answered(503)],
  ['gateway_timeout', '504: what stands before it gets no answer in time', answered(504)],
  ['server_error', '507: it fails with an error of its own', answered(507)],
  ['unknown', 'It fails', unanswered('something_new')],
];

test.each(SAMPLES)('%s: %s', (code, title, attempt) => {
  const cause = causeOf(attempt);
  expect(cause).toMatchObject({ code, title });
  expect(cause.advice).toMatch(/\.$/);
});

test('every cause has a sample', () => {
  expect([...new Set(SAMPLES.map(([code]) => code))].sort()).toEqual([...CAUSE_CODES].sort());
});

test('what a body says of itself is looked for where it stands alone, and only at its beginning', () => {
  expect(causeOf(answered(400, 'the field no_text is missing')).code).toBe('bad_request');
  expect(causeOf(answered(410, `${' '.repeat(10)}${'x'.repeat(5_000)}please unsubscribe me`)).code).toBe(
    'gone',
  );
  expect(causeOf({ ...unanswered('timeout'), responseBody: 'no_text', httpStatusCode: 400 }).code).toBe(
    'timeout',
  );
});
