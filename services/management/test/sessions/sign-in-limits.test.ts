import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  oneQueueBackend,
  queueBackends,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { openLimitStore } from '../../src/http/limits.ts';
import { createSignInLimits } from '../../src/sessions/sign-in-limits.ts';
import {
  failure,
  GENEROUS_TIMEOUTS,
  type Harness,
  PASSWORD,
  startHarness,
  type TestAccount,
  type TestUser,
} from '../harness.ts';

const PER_EMAIL = 4;
const PER_ADDRESS = 8;
const TOO_MANY = { status: 429, json: failure(429, 'Too many requests.') };

/** Only tests in which a count is shared, cleared, reduced or concurrently incremented run on each queue. */
const [firstBackend] = oneQueueBackend();

describe.each(queueBackends())('failed sign-ins, counted on $name', (backend) => {
  let harness: Harness;
  let account: TestAccount;
  let user: TestUser;
  let networks = 0;

  beforeAll(async () => {
    harness = await startHarness(async (databaseUrl) => ({
      queueUrl: await createTestQueueUrl(backend, databaseUrl),
      signInAttemptsPerEmail: PER_EMAIL,
      signInAttemptsPerAddress: PER_ADDRESS,
      trustedProxyCidrs: ['127.0.0.0/8'],
    }));
    account = await harness.newAccount();
  });

  beforeEach(async () => {
    user = await harness.newUser(account, 'it', []);
  });

  afterAll(() => harness.close());

  /** Returns a network of 256 addresses that has not been used before. */
  const newNetwork = () => `203.0.${++networks}`;
  const newAddress = () => `${newNetwork()}.1`;
  const signIn = (email: string, password: string, address: string, call = harness.call, cookie?: string) =>
    call('POST', '/api/v3/session', {
      body: { email, password },
      headers: { 'x-forwarded-for': address, ...(cookie === undefined ? {} : { cookie }) },
    });
  /** Returns the cookie of a browser in which the user has signed in. */
  const deviceOf = async (email: string) => {
    const { headers } = await signIn(email, PASSWORD, newAddress());
    return headers.getSetCookie()[1]?.split(';')[0] ?? '';
  };

  test('are limited for an e-mail address from one network, across all processes', async () => {
    const second = await harness.startSecond();
    const network = newNetwork();
    for (let tries = 0; tries < PER_EMAIL; tries++) {
      const call = tries % 2 === 0 ? harness.call : second.call;
      expect((await signIn(user.email, 'wrong', `${network}.${tries}`, call)).status).toBe(401);
    }
    for (const call of [harness.call, second.call]) {
      const rejected = await signIn(user.email, PASSWORD, `${network}.200`, call);
      expect(rejected).toMatchObject(TOO_MANY);
      const retryAfter = Number(rejected.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(900);
    }
    // Neither the user's key nor other users are affected.
    expect((await harness.call('GET', '/api/v3/session', { token: user.apiKey })).status).toBe(200);
    const otherUser = await harness.newUser(account, 'it', []);
    expect((await signIn(otherUser.email, PASSWORD, `${network}.201`)).status).toBe(201);
    expect((await signIn(user.email, PASSWORD, newAddress())).status).toBe(201);
    await second.close();
  });

  test('are reset for an e-mail address that signs in', async () => {
    const network = newNetwork();
    for (let rounds = 0; rounds < 3; rounds++) {
      for (let tries = 0; tries < PER_EMAIL - 1; tries++) {
        expect((await signIn(user.email, 'wrong', `${network}.${rounds}`)).status).toBe(401);
      }
      expect((await signIn(user.email, PASSWORD, `${network}.${rounds}`)).status).toBe(201);
    }
  });

  test('are counted before their result, so that concurrent ones do not exceed the limit', async () => {
    const network = newNetwork();
    const flood = Array.from({ length: 15 }, (_, client) =>
      signIn(user.email, 'wrong', `${network}.${client}`),
    );
    const statuses = (await Promise.all(flood)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(PER_EMAIL);
    expect(statuses.filter((status) => status === 429)).toHaveLength(15 - PER_EMAIL);
  });

  test('are counted without successful ones, so that many users can sign in from one address', async () => {
    const address = newAddress();
    for (let times = 0; times < PER_ADDRESS + 2; times++) {
      expect((await signIn(user.email, PASSWORD, address)).status).toBe(201);
    }
  });

  if (backend.name !== firstBackend?.name) return;

  test('are limited for an e-mail address from all networks at twenty times the limit of one', async () => {
    // Each attempt costs a password hash, so the limit is one attempt from one network and twenty from all networks.
    const strict = await harness.startSecond({ signInAttemptsPerEmail: 1 });
    const tryOnce = (password: string) => signIn(user.email, password, newAddress(), strict.call);
    for (let tries = 0; tries < 20; tries++) expect((await tryOnce('wrong')).status).toBe(401);
    expect(await tryOnce(PASSWORD)).toMatchObject(TOO_MANY);
    await strict.close();
  });

  test('do not lock out the owner’s known browser, even from the same network', async () => {
    const cookie = await deviceOf(user.email);
    const network = newNetwork();
    for (let tries = 0; tries <= PER_ADDRESS; tries++) await signIn(user.email, 'wrong', `${network}.1`);
    expect(await signIn(user.email, PASSWORD, `${network}.1`)).toMatchObject(TOO_MANY);
    expect((await signIn(user.email, PASSWORD, `${network}.1`, harness.call, cookie)).status).toBe(201);
  });

  test('in a known browser have a separate limit and do not use up others', async () => {
    const cookie = await deviceOf(user.email);
    const address = newAddress();
    for (let tries = 0; tries < PER_EMAIL; tries++) {
      expect((await signIn(user.email, 'wrong', address, harness.call, cookie)).status).toBe(401);
    }
    expect(await signIn(user.email, PASSWORD, address, harness.call, cookie)).toMatchObject(TOO_MANY);
    expect((await signIn(user.email, PASSWORD, address)).status).toBe(201);
  });

  test('with a foreign or forged cookie count as those of an unknown browser', async () => {
    const otherUser = await harness.newUser(account, 'it', []);
    const cookie = await deviceOf(otherUser.email);
    const forged = cookie.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'));
    const address = newAddress();
    for (let tries = 0; tries < PER_EMAIL; tries++) {
      const cookieHeader = tries % 2 === 0 ? cookie : forged;
      expect((await signIn(user.email, 'wrong', address, harness.call, cookieHeader)).status).toBe(401);
    }
    expect(await signIn(user.email, PASSWORD, address, harness.call, cookie)).toMatchObject(TOO_MANY);
  });

  test('are limited in the same way for an unknown e-mail address', async () => {
    const address = newAddress();
    for (let tries = 0; tries < PER_EMAIL; tries++) {
      expect((await signIn('nobody@example.com', 'wrong', address)).status).toBe(401);
    }
    expect(await signIn('NOBODY@example.com', 'wrong', address)).toMatchObject(TOO_MANY);
  });

  test('are limited for a client, whose rejected attempts do not count for e-mail addresses', async () => {
    const address = newAddress();
    for (let tries = 0; tries < PER_ADDRESS; tries++) {
      expect((await signIn(`user-${tries}@example.com`, 'wrong', address)).status).toBe(401);
    }
    for (let tries = 0; tries < PER_EMAIL; tries++) {
      expect(await signIn(user.email, 'wrong', address)).toMatchObject(TOO_MANY);
    }
    expect((await signIn(user.email, PASSWORD, newAddress())).status).toBe(201);
  });

  test('are counted for an IPv6 network and not for each of its addresses', async () => {
    const network = `2001:db8:0:${++networks}`;
    for (let tries = 0; tries < PER_ADDRESS; tries++) {
      expect((await signIn(`u${tries}@example.com`, 'wrong', `${network}::${tries}`)).status).toBe(401);
    }
    expect(await signIn('u@example.com', 'wrong', `${network}:1:2:3:4`)).toMatchObject(TOO_MANY);
  });

  test('from changing networks with unknown e-mail addresses do not delay the owner, in a known browser or a new one', async () => {
    const cookie = await deviceOf(user.email);
    const ended = new AbortController();
    let sent = 0;
    const attack = async () => {
      while (!ended.signal.aborted) {
        sent += 1;
        const address = `198.51.${sent % 256}.${(sent >> 8) % 256}`;
        const { status } = await signIn(`unknown-${sent}@example.com`, 'wrong', address);
        expect([401, 503]).toContain(status);
      }
    };
    const attackers = Array.from({ length: 48 }, attack);
    await eventually(async () => expect(sent).toBeGreaterThan(96));
    for (let times = 0; times < 3; times++) {
      expect((await signIn(user.email, PASSWORD, newAddress(), harness.call, cookie)).status).toBe(201);
      expect((await signIn(user.email, PASSWORD, newAddress())).status).toBe(201);
    }
    ended.abort();
    await Promise.all(attackers);
  });

  test('count for a proxy that is not trusted', async () => {
    const untrusting = await harness.startSecond({ trustedProxyCidrs: [], signInAttemptsPerAddress: 2 });
    for (const expected of [401, 401, 429]) {
      const { status } = await signIn('a@example.com', 'wrong', newAddress(), untrusting.call);
      expect(status).toBe(expected);
    }
    await untrusting.close();
  });

  test('count for a trusted proxy that passes on no valid client address', async () => {
    for (const forwardedFor of ['unknown', 'a, b', '203.0.113.7:4711']) {
      expect((await signIn('b@example.com', 'wrong', forwardedFor)).status).toBe(401);
    }
  });
});

test.each(queueBackends())(
  'refunds permit no further sign-ins, and rejected ones do not extend the window, counted on $name',
  async (backend) => {
    const { url, drop } = await createTestDatabase();
    const database = openDatabase({ url, connectTimeoutMs: WAIT_TIMEOUT_MS });
    const queueUrl = await createTestQueueUrl(backend, url);
    const { countMs: countTimeoutMs } = GENEROUS_TIMEOUTS;
    const { pool } = database;
    const store = await openLimitStore({ queueUrl, pool, onError: () => undefined, countTimeoutMs });
    const limits = createSignInLimits(store, { perEmailMax: 2, perAddressMax: 1_000, windowSeconds: 2 });
    const attempt = { email: 'ada@example.com', clientAddress: '203.0.113.7', device: null };
    const countAttempt = () => limits.countAttempt(attempt);

    // A refund after the end of its window.
    const strict = createSignInLimits(store, { perEmailMax: 1, perAddressMax: 1_000 });
    const other = { ...attempt, email: 'grace@example.com' };
    await strict.refundAttempt(other);
    expect(await strict.countAttempt(other)).toMatchObject({ kind: 'accepted' });
    expect(await strict.countAttempt(other)).toMatchObject({ kind: 'rejected' });

    // Three concurrent attempts; if a window ends between them, the next three are in one window.
    await eventually(async () => {
      const rejection = { kind: 'rejected', retryAfterSeconds: expect.any(Number) };
      expect(await Promise.all([countAttempt(), countAttempt(), countAttempt()])).toContainEqual(rejection);
    });
    // Further attempts do not extend the window.
    await eventually(async () => expect(await countAttempt()).toMatchObject({ kind: 'accepted' }));
    await store.close();
    await database.close();
    await drop();
  },
);
