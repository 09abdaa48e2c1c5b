import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createId, PUBLIC_KEY_PATTERN, verifyEd25519 } from '@runhook/contract';
import { type Receiver, startReceiver } from '@runhook/testing';
import { PUBLIC_KEYS_LIMIT } from '../../src/subscriptions/public-keys.ts';
import {
  failure,
  type Harness,
  type Json,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let receiver: Receiver;
let subscription: Json;

beforeAll(async () => {
  harness = await startHarness({ egressAllowCidrs: ['127.0.0.1/32'], trustedProxyCidrs: ['127.0.0.1/32'] });
  account = await harness.newAccount();
});

beforeEach(async () => {
  receiver = await startReceiver();
  subscription = await harness.newSubscription(account, {
    client_url: receiver.url,
    signature_key: 'ed25519',
  });
});

afterEach(() => receiver.close());

afterAll(() => harness.close());

const call = (method: string, suffix = '', body?: object) =>
  harness.call(method, account.path(`/subscription/${subscription.id}${suffix}`), {
    token: account.token,
    ...(body && { body }),
  });
const put = (fields: object) =>
  call('PUT', '', { ...SUBSCRIPTION_FIELDS, client_url: receiver.url, ...fields });
const rotate = (body?: object) => call('POST', '/rotate-signature-key', body);
const keysOf = ({ json }: { json: Json }): string[] => json.data.signature_key.public_keys;
const publishedKeys = (id: string = subscription.id, headers: Record<string, string> = {}) =>
  harness.call('GET', `/.well-known/webhook-keys/${id}`, { headers });

/** Returns the public key of each Ed25519 signature of a sample, and the number of its signatures by secret. */
async function signersOf(
  publicKeys: string[],
): Promise<{ signers: (string | undefined)[]; bySecret: number }> {
  await call('GET', '/test');
  const request = receiver.requests.at(-1);
  const body = request?.body ?? '';
  const text = (name: string) => String(request?.headers[name]);
  const signatures = text('webhook-signature').split(' ');
  const ed25519 = signatures.filter((one) => one.startsWith('v1a,'));
  return {
    signers: ed25519.map((signature) =>
      publicKeys.find((key) =>
        verifyEd25519(text('webhook-id'), text('webhook-timestamp'), body, key, signature),
      ),
    ),
    bySecret: signatures.length - ed25519.length,
  };
}

test('a webhook without a key pair has no such field and sends one signature', async () => {
  subscription = await harness.newSubscription(account, { client_url: receiver.url });
  expect(subscription).not.toHaveProperty('signature_key');
  expect(await signersOf([])).toEqual({ signers: [], bySecret: 1 });
  expect((await put({ signature_key: null })).json.data).not.toHaveProperty('signature_key');
  expect(await rotate()).toMatchObject({
    json: failure(409, 'The webhook has no key pair: set signature_key first.'),
  });
});

test('a key pair signs samples as well, and its private key is stored encrypted', async () => {
  const { type, public_keys: keys, ...rest } = subscription.signature_key;
  expect([type, keys, rest]).toEqual(['ed25519', [expect.stringMatching(PUBLIC_KEY_PATTERN)], {}]);
  expect(await signersOf(keys)).toEqual({ signers: keys, bySecret: 1 });
  const other = await harness.newSubscription(await harness.newAccount(), { signature_key: 'ed25519' });
  expect(await signersOf(other.signature_key.public_keys)).toEqual({ signers: [undefined], bySecret: 1 });
  const row = await harness.database.prisma.subscription.findUniqueOrThrow({
    where: { id: subscription.id },
  });
  expect(harness.secrets.decrypt(row.signatureKeyCiphertext ?? '')).toMatch(/^whsk_/);
});

test('an update keeps the key pair unless it is null, and makes another one after that', async () => {
  const { signature_key: created } = subscription;
  for (const fields of [{}, { signature_key: 'ed25519' }, { signature_key: created }])
    expect((await put(fields)).json.data.signature_key).toEqual(created);
  expect((await put({ signature_key: null })).json.data).not.toHaveProperty('signature_key');
  expect(await signersOf([])).toEqual({ signers: [], bySecret: 1 });
  expect((await publishedKeys()).status).toBe(404);
  expect(keysOf(await put({ signature_key: 'ed25519' }))).not.toEqual(created.public_keys);
});

test.each(['rsa', true, {}, { type: 'rsa' }, ['ed25519']])(
  'rejects the key type %j',
  async (signature_key) => {
    const { status, json } = await put({ signature_key });
    expect([status, json.status.errors]).toEqual([
      400,
      [{ field: 'signature_key', message: 'must be ed25519 or null' }],
    ]);
  },
);

test('during a rotation both keys sign and are published, and after it the new one alone', async () => {
  const old = subscription.signature_key.public_keys[0];
  const rotated = await rotate({ overlap_hours: 3 });
  const keys = keysOf(rotated);
  expect(rotated.status).toBe(200);
  expect(keys).toEqual([old, expect.stringMatching(PUBLIC_KEY_PATTERN)]);
  const { rotation } = rotated.json.data.signature_key;
  expect(Number(rotation.ends_at) - Number(rotation.started_at)).toBe(3 * 3_600_000_000);
  expect(rotated.json.data).not.toHaveProperty('secret_rotation');
  expect((await publishedKeys()).json.data).toEqual({ type: 'ed25519', public_keys: keys });
  expect(await signersOf(keys)).toEqual({ signers: keys, bySecret: 1 });
  for (const conflict of [await rotate(), await call('POST', '/rotate-secret')])
    expect(conflict.json).toEqual(
      failure(
        409,
        'A rotation of the secret or the key pair is under way, or has just begun: finish it before the next.',
      ),
    );
  const finished = await call('POST', '/finish-rotation');
  expect(finished.json.data.signature_key).toEqual({ type: 'ed25519', public_keys: keys.slice(1) });
  expect(await signersOf(keys)).toEqual({ signers: keys.slice(1), bySecret: 1 });
  expect((await publishedKeys()).json.data.public_keys).toEqual(keys.slice(1));
});

test('a rotation ends at its time, and a rotation of the secret follows it', async () => {
  const [, next] = keysOf(await rotate());
  const endNow = 'UPDATE subscriptions SET rotation_ends_at = now() WHERE id = $1';
  await harness.database.pool.query(endNow, [subscription.id]);
  expect((await call('GET')).json.data.signature_key).toEqual({ type: 'ed25519', public_keys: [next] });
  expect((await call('POST', '/finish-rotation')).status).toBe(409);
  const { data } = (await call('POST', '/rotate-secret')).json;
  expect(data).toMatchObject({ secret_rotation: {}, signature_key: { public_keys: [next] } });
  expect(data.signature_key).not.toHaveProperty('rotation');
  expect(await signersOf([String(next)])).toEqual({ signers: [next], bySecret: 2 });
  // The key pair can be removed while the secret is rotated, and the rotation continues.
  expect((await put({ signature_key: null })).json.data.secret_rotation).toEqual(data.secret_rotation);
});

test('a rotation without overlap replaces the key pair at once, and removing it ends a rotation', async () => {
  const old = subscription.signature_key.public_keys;
  const [current, ...rest] = keysOf(await rotate({ overlap_hours: 0 }));
  expect([rest, old.includes(current)]).toEqual([[], false]);
  expect(await signersOf([String(current)])).toEqual({ signers: [current], bySecret: 1 });
  await rotate();
  await put({ signature_key: null });
  expect((await call('POST', '/finish-rotation')).status).toBe(409);
  expect((await put({ signature_key: 'ed25519' })).json.data.signature_key).not.toHaveProperty('rotation');
});

test('of two concurrent rotations of the key pair, the last that succeeds returns the current key', async () => {
  const responses = await Promise.all([rotate({ overlap_hours: 0 }), rotate({ overlap_hours: 0 })]);
  const successful = responses.filter(({ status }) => status === 200);
  expect(responses.every(({ status }) => status === 200 || status === 409)).toBe(true);
  const [current] = keysOf(await call('GET'));
  expect(successful.map(keysOf)).toContainEqual([current]);
});

test('the public keys are readable without credentials, may be cached, and reveal nothing else', async () => {
  const { status, json, headers } = await publishedKeys();
  expect(status).toBe(200);
  expect(json).toEqual({
    data: { type: 'ed25519', public_keys: subscription.signature_key.public_keys },
    status: { code: 200 },
  });
  expect(headers.get('cache-control')).toBe('public, max-age=300');
  const { id: plainId } = await harness.newSubscription(account);
  const deletedId = subscription.id;
  await call('DELETE');
  for (const id of [plainId, deletedId, createId('subscription'), 'wsu_1', account.token]) {
    const missing = await publishedKeys(id);
    expect(missing.json).toEqual(failure(404, 'Webhook not found.'));
    expect(missing.headers.get('cache-control')).toBe('no-store');
  }
});

test('the calls of one client for public keys are limited', async () => {
  const client = { 'x-forwarded-for': '203.0.113.9' };
  let limited = null;
  for (let calls = 0; calls <= PUBLIC_KEYS_LIMIT.callsMax && limited === null; calls += 1) {
    const response = await publishedKeys('wsu_1', client);
    if (response.status === 429) limited = { calls, retryAfter: response.headers.get('retry-after') };
  }
  expect(limited).toEqual({ calls: PUBLIC_KEYS_LIMIT.callsMax, retryAfter: expect.stringMatching(/^\d+$/) });
  expect((await publishedKeys()).status).toBe(200);
});
