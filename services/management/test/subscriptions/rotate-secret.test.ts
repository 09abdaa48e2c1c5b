import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { verify } from '@runhook/contract';
import { type Receiver, startReceiver } from '@runhook/testing';
import { Webhook } from 'standardwebhooks';
import {
  failure,
  type Harness,
  type Json,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
} from '../harness.ts';

const HOUR_MICROS = 3_600_000_000;

let harness: Harness;
let account: TestAccount;
let receiver: Receiver;
let subscription: Json;

beforeAll(async () => {
  harness = await startHarness({ egressAllowCidrs: ['127.0.0.1/32'] });
  account = await harness.newAccount();
});

beforeEach(async () => {
  receiver = await startReceiver();
  subscription = await harness.newSubscription(account, { client_url: receiver.url });
});

afterEach(() => receiver.close());

afterAll(() => harness.close());

const call = (method: string, suffix: string, options: object = {}) =>
  harness.call(method, account.path(`/subscription/${subscription.id}${suffix}`), {
    token: account.token,
    ...options,
  });
const rotate = (body?: object, headers: Record<string, string> = {}) =>
  call('POST', '/rotate-secret', { headers, ...(body && { body }) });
const finish = () => call('POST', '/finish-rotation');
const readSubscription = async (): Promise<Json> => (await call('GET', '')).json.data;
const CONFLICT = failure(
  409,
  'A rotation of the secret is under way, or has just begun: finish it before the next.',
);

/** Sends a sample to the endpoint, and returns functions that check its signatures. */
async function sample() {
  await call('GET', '/test');
  const { headers, body } = receiver.requests.at(-1) ?? { headers: {}, body: Buffer.from('') };
  const signedBy = (secret: string) => {
    try {
      new Webhook(secret).verify(body, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };
  return { isAuthorizedBy: (secret: string) => verify(body, secret, headers.authorization), signedBy };
}

async function rowOf() {
  const { rows } = await harness.database.pool.query('SELECT * FROM subscriptions WHERE id = $1', [
    subscription.id,
  ]);
  return rows[0];
}

const endNow = () =>
  harness.database.pool.query('UPDATE subscriptions SET rotation_ends_at = now() WHERE id = $1', [
    subscription.id,
  ]);

test('a rotation returns the new secret once and shows its period while it lasts', async () => {
  const subscriptionBefore = await readSubscription();
  const { status, json } = await rotate({ overlap_hours: 3 });
  const { hmac_secret: next, secret_rotation: rotation, ...rest } = json.data;
  expect(status).toBe(200);
  expect(next).toMatch(/^whsec_/);
  expect(next).not.toBe(subscription.hmac_secret);
  expect(Number(rotation.ends_at) - Number(rotation.started_at)).toBe(3 * HOUR_MICROS);
  expect(rest).toEqual(subscriptionBefore);
  expect(await readSubscription()).toEqual({ ...subscriptionBefore, secret_rotation: rotation });
  expect((await call('PUT', '', { body: SUBSCRIPTION_FIELDS })).json.data.secret_rotation).toEqual(rotation);
  const row = await rowOf();
  expect(JSON.stringify(row)).not.toContain(next.slice('whsec_'.length, -1));
  expect(harness.secrets.decrypt(row.next_hmac_secret_ciphertext)).toBe(next);
});

test.each([
  ['nothing', undefined, 24],
  ['an empty object', {}, 24],
  ['null', { overlap_hours: null }, 24],
  ['a week', { overlap_hours: 168 }, 168],
])('a rotation overlaps for 24 hours, or as its body states: %s', async (_, body, hours) => {
  const { secret_rotation: rotation } = (await rotate(body)).json.data;
  expect(Number(rotation.ends_at) - Number(rotation.started_at)).toBe(hours * HOUR_MICROS);
});

test.each([
  [169, 'must be less than or equal to 168'],
  [-1, 'must be greater than or equal to 0'],
  [1.5, 'must be an integer'],
  ['24', 'must be a number'],
])('a rotation rejects an overlap of %j', async (overlap_hours, message) => {
  const { status, json } = await rotate({ overlap_hours });
  expect(status).toBe(400);
  expect(json.status.errors).toEqual([{ field: 'overlap_hours', message }]);
  expect(await readSubscription()).not.toHaveProperty('secret_rotation');
});

test('until a rotation is finished, Webhook-Signature is by both secrets and Authorization by the old one', async () => {
  const old = subscription.hmac_secret;
  const next = (await rotate()).json.data.hmac_secret;
  const duringOverlap = await sample();
  expect([duringOverlap.isAuthorizedBy(old), duringOverlap.isAuthorizedBy(next)]).toEqual([true, false]);
  expect([duringOverlap.signedBy(old), duringOverlap.signedBy(next)]).toEqual([true, true]);
  const finished = await finish();
  expect(finished.status).toBe(200);
  expect(finished.json.data).not.toHaveProperty('secret_rotation');
  expect(finished.json.data).not.toHaveProperty('hmac_secret');
  const afterOverlap = await sample();
  expect([afterOverlap.isAuthorizedBy(old), afterOverlap.isAuthorizedBy(next)]).toEqual([false, true]);
  expect([afterOverlap.signedBy(old), afterOverlap.signedBy(next)]).toEqual([false, true]);
  const row = await rowOf();
  expect(harness.secrets.decrypt(row.hmac_secret_ciphertext)).toBe(next);
  expect(row).toMatchObject({ next_hmac_secret_ciphertext: null, rotation_ends_at: null });
  expect(await finish()).toMatchObject({
    status: 409,
    json: failure(409, 'No rotation of the secret is under way.'),
  });
});

test('a rotation ends at its time, and the next one replaces the secret that took over', async () => {
  const firstSecret = (await rotate()).json.data.hmac_secret;
  await endNow();
  expect(await readSubscription()).not.toHaveProperty('secret_rotation');
  const afterEnd = await sample();
  expect([afterEnd.isAuthorizedBy(firstSecret), afterEnd.signedBy(subscription.hmac_secret)]).toEqual([
    true,
    false,
  ]);
  expect((await finish()).status).toBe(409);
  const second = (await rotate()).json.data.hmac_secret;
  const duringOverlap = await sample();
  expect([
    duringOverlap.isAuthorizedBy(firstSecret),
    duringOverlap.signedBy(firstSecret),
    duringOverlap.signedBy(second),
  ]).toEqual([true, true, true]);
  expect(duringOverlap.signedBy(subscription.hmac_secret)).toBe(false);
});

test('a rotation without overlap replaces the secret at once', async () => {
  const { data } = (await rotate({ overlap_hours: 0 })).json;
  expect(data).not.toHaveProperty('secret_rotation');
  const afterOverlap = await sample();
  expect([
    afterOverlap.isAuthorizedBy(data.hmac_secret),
    afterOverlap.signedBy(subscription.hmac_secret),
  ]).toEqual([true, false]);
});

test('a second rotation is rejected while the first is in progress', async () => {
  await rotate();
  expect(await rotate()).toMatchObject({ status: 409, json: CONFLICT });
});

test.each([24, 0])(
  'one of two concurrent rotations with an overlap of %i hours succeeds',
  async (overlap_hours) => {
    const holder = await harness.database.pool.connect();
    try {
      // The two requests have read the row and wait to update it.
      await holder.query('BEGIN');
      await holder.query('SELECT FROM subscriptions WHERE id = $1 FOR UPDATE', [subscription.id]);
      const rotating = [rotate({ overlap_hours }), rotate({ overlap_hours })];
      const waitingBackends = `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE%secret_generation%'`;
      for (let count = 0; count < 2; )
        count = (await harness.database.pool.query(waitingBackends)).rowCount ?? 0;
      await holder.query('COMMIT');
      const responses = await Promise.all(rotating);
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 409]);
      const won = responses.find(({ status }) => status === 200)?.json.data.hmac_secret;
      expect((await sample()).signedBy(won)).toBe(true);
    } finally {
      holder.release();
    }
  },
);

test('finish-rotation keeps the re-encrypted secret when the ciphertext changes after it was read', async () => {
  const next = (await rotate()).json.data.hmac_secret;
  const renewed = harness.secrets.encrypt(next);
  const holder = await harness.database.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query('UPDATE subscriptions SET next_hmac_secret_ciphertext = $2 WHERE id = $1', [
      subscription.id,
      renewed,
    ]);
    const finishing = finish();
    const waitingBackends = `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE%secret_generation%'`;
    for (let count = 0; count < 1; )
      count = (await harness.database.pool.query(waitingBackends)).rowCount ?? 0;
    await holder.query('COMMIT');
    expect((await finishing).status).toBe(200);
    expect((await rowOf()).hmac_secret_ciphertext).toBe(renewed);
  } finally {
    holder.release();
  }
});

test('a repeated Idempotency-Key returns the same secret and rotates only once', async () => {
  const headers = { 'idempotency-key': 'a rotation' };
  const firstSecret = await rotate({}, headers);
  const repeatResponse = await rotate({}, headers);
  expect(repeatResponse.json).toEqual(firstSecret.json);
  expect(repeatResponse.headers.get('idempotent-replay')).toBe('true');
});

test('a rotation requires the permission to write webhooks and an existing webhook', async () => {
  const token = await harness.newToken(account, ['read_only']);
  for (const rest of ['/rotate-secret', '/finish-rotation'])
    expect((await call('POST', rest, { token })).status).toBe(403);
  await call('DELETE', '');
  for (const rest of ['/rotate-secret', '/finish-rotation'])
    expect((await call('POST', rest)).json).toEqual(failure(404, 'Webhook not found.'));
});
