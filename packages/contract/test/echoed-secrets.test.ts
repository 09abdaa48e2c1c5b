import { describe, expect, test } from '@jest/globals';
import { deliveryHeaders, type LoggedRequest, toLoggedResponse } from '../src/index.ts';

const HMAC_SECRET = `whsec_${'Ab+/'.repeat(10)}Abc=`;

function requestWith(customHeaders: Record<string, string>): LoggedRequest {
  const hmacSecrets = [HMAC_SECRET] as const;
  const headers = deliveryHeaders({
    body: '{}',
    eventId: 'wev_1',
    hmacSecrets,
    sentAt: new Date('2026-11-23T10:00:00Z'),
    customHeaders,
  });
  return { headers, customHeaders, hmacSecrets };
}

function loggedBody(body: string, customHeaders: Record<string, string>, truncated = false): string {
  const response = { headers: {}, body: Buffer.from(body), truncated };
  return toLoggedResponse(response, requestWith(customHeaders)).body;
}

const KEY = 'a "key" & <more>/+?';

describe('an echoed value of a custom header is masked', () => {
  test.each([
    ['unchanged', KEY],
    ['in JSON', JSON.stringify({ 'x-gate': KEY }).slice('{"x-gate":"'.length, -2)],
    ['in HTML', 'a &quot;key&quot; &amp; &lt;more&gt;/+?'],
    ['in a URL', encodeURIComponent(KEY)],
    ['in a form', new URLSearchParams({ k: KEY }).toString().slice('k='.length)],
    ['in base64', Buffer.from(KEY).toString('base64')],
    ['in base64url', Buffer.from(KEY).toString('base64url')],
  ])('%s', (_form, echoed) => {
    expect(loggedBody(`before ${echoed} after ${echoed}`, { 'X-Gate': KEY })).toBe('before *** after ***');
  });

  test.each(['', 'x', 'xx', 'xxx'])('inside of other data in base64, after %j', (prefix) => {
    const key = 'Zq8-gateway-key-Zq8';
    const body = loggedBody(Buffer.from(`${prefix}${key}, more`).toString('base64'), { 'X-Gate': key });
    expect(body).toContain('***');
    expect(Buffer.from(body.replaceAll('***', ''), 'base64').toString('latin1')).not.toContain('gateway');
  });

  test('without its authentication scheme', () => {
    expect(loggedBody('you sent t0ken-t0ken', { Authorization: 'Bearer t0ken-t0ken' })).toBe('you sent ***');
  });

  test('if one value contains another', () => {
    expect(loggedBody('abcdefgh abcd', { 'X-One': 'abcd', 'X-Two': 'abcdefgh' })).toBe('*** ***');
  });

  test('in response headers', () => {
    const response = {
      headers: { 'x-echo': `key=${KEY}`, date: 'today' },
      body: Buffer.from(''),
      truncated: false,
    };
    expect(toLoggedResponse(response, requestWith({ 'X-Gate': KEY })).headers).toEqual({
      'x-echo': 'key=***',
      date: 'today',
    });
  });
});

test('the beginning of a value at the end of an incomplete body is masked', () => {
  const custom = { 'X-Gate': 'Zq8-gateway-Zq8' };
  expect(loggedBody('you sent Zq8-gatew', custom, true)).toBe('you sent ***');
  expect(loggedBody('you sent Zq8-gatew', custom, false)).toBe('you sent Zq8-gatew');
  const long = `${'x'.repeat(16_384 - 8)}${'Zq8-gateway-Zq8'}`;
  expect(loggedBody(long, custom)).toBe(`${'x'.repeat(16_384 - 8)}***`);
  expect(loggedBody(`${'x'.repeat(16_384 - 3)}Zq8-gateway-Zq8`, custom)).toHaveLength(16_384);
});

test('echoed signatures and signing secrets are masked, the other headers of a delivery are not', () => {
  const { headers } = requestWith({});
  const signature = headers['webhook-signature']?.slice('v1,'.length);
  const echoed = [
    headers.authorization,
    headers['webhook-signature'],
    signature,
    HMAC_SECRET,
    HMAC_SECRET.slice(6),
  ];
  expect(loggedBody(echoed.join('\n'), {})).toBe('***\n***\n***\n***\n***');
  const unmasked = JSON.stringify([headers['user-agent'], headers['content-type'], headers['webhook-id']]);
  expect(loggedBody(unmasked, { Accept: 'application/json' })).toBe(unmasked);
});

test('values of fewer than four characters are not masked', () => {
  expect(loggedBody('yes, on, 123 and 1234', { 'X-One': '123', 'X-Two': 'on', 'X-Pin': '1234' })).toBe(
    'yes, on, 123 and ***',
  );
});

test('masks each line of a response if there are too many secrets to search for', () => {
  const parts = Array.from({ length: 200 }, (_, index) => `word-number-${index}`).join(' ');
  expect(loggedBody('first\nword-number-7', { 'X-Parts': parts })).toBe('***\n***');
  const headers = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-${index}`, 'value']));
  const response = { headers, body: Buffer.from(''), truncated: false };
  const logged = toLoggedResponse(response, requestWith({ 'X-Parts': parts }));
  expect(Object.keys(logged.headers)).toEqual(Object.keys(headers));
  expect(new Set(Object.values(logged.headers))).toEqual(new Set(['***']));
});

test('masks each of many headers separately', () => {
  const headers = { 'x-one': 'the t0ken-t0ken', 'x-two': '', 'x-three': 't0ken-t0ken' };
  const response = { headers, body: Buffer.from(''), truncated: false };
  const logged = toLoggedResponse(response, requestWith({ 'X-Gate': 't0ken-t0ken' }));
  expect(logged.headers).toEqual({ 'x-one': 'the ***', 'x-two': '', 'x-three': '***' });
});
