import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import {
  createHmacSecret,
  createKeyPair,
  deliveryHeaders,
  type KeyPair,
  maskHeaders,
  PUBLIC_KEY_PATTERN,
  renderPayload,
  secretsAt,
  sign,
  verifyEd25519,
} from '@runhook/contract';
import { Webhook } from 'standardwebhooks';
import { EVENTS, SUBSCRIPTION } from './fixtures.ts';

const event = EVENTS['job.run.completed'];
const body = renderPayload(event, SUBSCRIPTION);

test('a Standard Webhooks library verifies a delivery with the same secret', () => {
  const hmacSecret = createHmacSecret();
  const headers = deliveryHeaders({
    body,
    eventId: event.eventId,
    hmacSecrets: [hmacSecret],
    sentAt: new Date(),
  });
  expect(new Webhook(hmacSecret).verify(body, headers)).toEqual(JSON.parse(body));
  expect(() => new Webhook(createHmacSecret()).verify(body, headers)).toThrow('signature');
});

test('a delivery carries its event id, its signature and its user agent', () => {
  const hmacSecret = createHmacSecret();
  const headers = deliveryHeaders({
    body,
    eventId: event.eventId,
    hmacSecrets: [hmacSecret],
    sentAt: new Date(1_770_000_000_999),
  });
  expect(headers).toEqual({
    'content-type': 'application/json',
    'user-agent': expect.stringMatching(/^Runhook\/\d+\.\d+\.\d+$/),
    authorization: sign(body, hmacSecret),
    'webhook-id': event.eventId,
    'webhook-timestamp': '1770000000',
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  });
});

const { keys, deliveries } = JSON.parse(
  await readFile(new URL('../golden/ed25519.json', import.meta.url), 'utf8'),
) as {
  keys: KeyPair[];
  deliveries: { body: string; headers: Record<string, string>; publicKeys: string[] }[];
};

test('a key pair adds the golden Ed25519 signature and leaves all other headers unchanged', () => {
  const [{ body, headers }] = deliveries as [(typeof deliveries)[number]];
  const delivery = {
    body,
    eventId: headers['webhook-id'] as string,
    hmacSecrets: [createHmacSecret()] as const,
    sentAt: new Date(1_000 * Number(headers['webhook-timestamp'])),
  };
  const plain = deliveryHeaders(delivery);
  expect(deliveryHeaders({ ...delivery, privateKeys: null })).toEqual(plain);
  const [, goldenSignature] = headers['webhook-signature']?.split(' ') ?? [];
  const signed = deliveryHeaders({ ...delivery, privateKeys: keys.slice(0, 2).map((key) => key.privateKey) });
  const [first, second, third, ...rest] = signed['webhook-signature']?.split(' ') ?? [];
  expect([first, second, rest]).toEqual([plain['webhook-signature'], goldenSignature, []]);
  expect({ ...signed, 'webhook-signature': '' }).toEqual({ ...plain, 'webhook-signature': '' });
  const [eventId, seconds] = [delivery.eventId, headers['webhook-timestamp'] as string];
  const isBy = (key: KeyPair | undefined, signature = '') =>
    verifyEd25519(eventId, seconds, body, key?.publicKey ?? '', signature);
  expect([isBy(keys[1], third), isBy(keys[0], third), isBy(keys[1], first)]).toEqual([true, false, false]);
});

test('a new key pair has the form of the golden ones and is never the same', () => {
  const [one, other] = [createKeyPair(), createKeyPair()];
  expect(one.publicKey).not.toBe(other.publicKey);
  for (const { privateKey, publicKey } of [...keys, one, other]) {
    expect(publicKey).toMatch(PUBLIC_KEY_PATTERN);
    const bytes = Buffer.from(privateKey.replace(/^whsk_/, ''), 'base64');
    expect(bytes).toHaveLength(64);
    expect(`whpk_${bytes.subarray(32).toString('base64')}`).toBe(publicKey);
  }
});

test('the log masks the headers that could be replayed and no others', () => {
  const headers = deliveryHeaders({
    body,
    eventId: event.eventId,
    hmacSecrets: [createHmacSecret()],
    sentAt: new Date(),
  });
  expect(maskHeaders(headers)).toEqual({ ...headers, authorization: '***', 'webhook-signature': '***' });
});

test('a secret is whsec_ and 32 random bytes in base64', () => {
  const secrets = Array.from({ length: 100 }, () => createHmacSecret());
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(new Set(secrets).size).toBe(100);
});

test('with two secrets a Standard Webhooks library accepts either, and Authorization is signed with the first', () => {
  const [current, next] = [createHmacSecret(), createHmacSecret()];
  const hmacSecrets = [current, next] as const;
  const headers = deliveryHeaders({ body, eventId: event.eventId, hmacSecrets, sentAt: new Date() });
  for (const hmacSecret of hmacSecrets)
    expect(new Webhook(hmacSecret).verify(body, headers)).toEqual(JSON.parse(body));
  expect(() => new Webhook(createHmacSecret()).verify(body, headers)).toThrow('signature');
  expect(headers.authorization).toBe(sign(body, current));
  expect(headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/);
});

test.each([
  ['without a rotation', null, 0, ['current']],
  ['a millisecond before its end', { next: 'next', endsAtMs: 1_000 }, 999, ['current', 'next']],
  ['at its end', { next: 'next', endsAtMs: 1_000 }, 1_000, ['next']],
])('secretsAt() returns the secrets that are valid %s', (_, rotation, nowMs, secrets) => {
  expect(secretsAt({ current: 'current', rotation }, nowMs, (secret) => secret)).toEqual(secrets);
});

test("a custom signature header and custom headers do not override Runhook's headers, and no value of them is logged", () => {
  const hmacSecret = createHmacSecret();
  const headers = deliveryHeaders({
    body,
    eventId: event.eventId,
    hmacSecrets: [hmacSecret],
    sentAt: new Date(),
    signatureHeader: 'X-Signature',
    customHeaders: { Authorization: 'Basic YTpi', 'X-Gate': 'open', 'Webhook-Id': 'mine' },
  });
  expect(headers).toMatchObject({
    'x-signature': sign(body, hmacSecret),
    authorization: 'Basic YTpi',
    'x-gate': 'open',
    'webhook-id': event.eventId,
  });
  expect(maskHeaders(headers)).toEqual({
    ...headers,
    'x-signature': '***',
    authorization: '***',
    'x-gate': '***',
    'webhook-signature': '***',
  });
});
