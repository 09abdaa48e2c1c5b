import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { IdSet, JOB_RUN_EVENTS, verify } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import {
  countDispatchedEvents,
  eventually,
  exampleEvent,
  oneQueueBackend,
  testSecrets,
} from '@runhook/testing';
import type { CachedSubscription } from '../../src/policy/next-step.ts';
import { estimateBytes, SubscriptionCache } from '../../src/record/accounts.ts';
import type { Target } from '../../src/target.ts';
import { type Harness, openHarness } from '../harness.ts';
import { deliveriesOf } from '../log-rows.ts';

const WAITING = 300;

describe.each(oneQueueBackend())('with cached subscriptions, on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  const event = (runId = 7_001) => exampleEvent('job.run.started', harness.account.jobs[0] as never, runId);
  const pathsOf = () => harness.receiver.requests.map(({ path }) => path);

  /** After this call the dispatcher has cached the account. */
  async function warmUp(path: string): Promise<void> {
    await harness.startDispatcher();
    await harness.publisher.publish(event());
    await harness.receiver.waitFor((request) => request.path === path);
  }

  test('every change of a subscription affects the next event', async () => {
    const { id } = await harness.subscribe('/first');
    await warmUp('/first');
    const { subscription: subscriptions } = harness.database.prisma;
    const update = (data: object) => subscriptions.update({ where: { id }, data });
    const next = async (path: string) => {
      await harness.publisher.publish(event());
      return (await harness.receiver.waitFor((request) => request.path === path)).at(-1);
    };

    await update({ clientUrl: `${harness.receiver.url}/second` });
    await next('/second');
    const hmacSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    await update({
      hmacSecretCiphertext: testSecrets.encrypt(hmacSecret),
      clientUrl: `${harness.receiver.url}/third`,
    });
    const signed = await next('/third');
    expect(verify(signed?.body ?? '', hmacSecret, signed?.headers.authorization)).toBe(true);
    await update({ signatureHeader: 'X-Signature' });
    await next('/third');
    await harness.receiver.waitFor(({ headers }) => headers['x-signature'] !== undefined);
    await update({
      headerNames: ['X-Gate'],
      headersCiphertext: testSecrets.encrypt('{"X-Gate":"open"}'),
    });
    await next('/third');
    await harness.receiver.waitFor(({ headers }) => headers['x-gate'] === 'open');
    const requestsToNext = 3;
    await harness.subscribe('/another');
    await next('/another');
    const arrived = (path: string) => pathsOf().filter((one) => one === path).length;
    // Waits until no earlier request is in flight.
    await harness.receiver.waitFor(() => arrived('/third') === requestsToNext + 1);
    await update({ deletedAt: new Date() });
    await harness.publisher.publish(event());
    await harness.receiver.waitFor(() => arrived('/another') === 2);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'pending')).toEqual([]);
    });
    expect(arrived('/third')).toBe(requestsToNext + 1);
  });

  test('a cached change that a failover has lost is not used after another change', async () => {
    const { id } = await harness.subscribe('/first');
    await warmUp('/first');
    const { prisma, pool } = harness.database;
    const moveTo = (path: string) =>
      prisma.subscription.update({ where: { id }, data: { clientUrl: `${harness.receiver.url}${path}` } });
    const stored = await pool.query(
      'SELECT s.client_url, s.version AS subscription, a.version AS account FROM subscriptions s JOIN accounts a ON true',
    );
    await moveTo('/lost');
    await harness.publisher.publish(event());
    await harness.receiver.waitFor(({ path }) => path === '/lost');
    // Restores the rows as on a promoted replica that lacks the change.
    const [{ client_url: clientUrl, subscription, account }] = stored.rows;
    await pool.query(`
      BEGIN;
      ALTER TABLE subscriptions DISABLE TRIGGER USER;
      ALTER TABLE accounts DISABLE TRIGGER USER;
      UPDATE subscriptions SET client_url = '${clientUrl}', version = ${subscription};
      UPDATE accounts SET version = ${account};
      ALTER TABLE subscriptions ENABLE TRIGGER USER;
      ALTER TABLE accounts ENABLE TRIGGER USER;
      COMMIT`);
    await moveTo('/second');
    await harness.publisher.publish(event());
    await harness.receiver.waitFor(2 + 1);
    expect(pathsOf()).toEqual(['/first', '/lost', '/second']);
  });

  test('an account that loses its webhooks gets no delivery of the next event', async () => {
    await harness.subscribe('/hook');
    await warmUp('/hook');
    await harness.database.prisma.account.updateMany({ data: { plan: 'free' } });
    const published = event();
    await harness.publisher.publish(published);
    await eventually(async () => {
      const count = await countDispatchedEvents(harness.database);
      expect(count).toBe(2);
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test.each(['moved', 'deleted'])(
    'a subscription that is %s while events wait gets no request at its previous endpoint',
    async (change) => {
      const { id } = await harness.subscribe('/old');
      await warmUp('/old');
      const queue = createQueueBackend(harness.queueUrl).createQueue<object>(JOB_RUN_EVENTS);
      await queue.pause();
      await harness.publisher.publishMany(
        Array.from({ length: WAITING }, (_, index) => event(8_000 + index)),
      );
      const moved = { clientUrl: `${harness.receiver.url}/new` };
      await harness.database.prisma.subscription.update({
        where: { id },
        data: change === 'moved' ? moved : { deletedAt: new Date() },
      });
      await queue.resume();
      await queue.close();
      await eventually(
        async () => {
          const count = await countDispatchedEvents(harness.database);
          expect(count).toBe(1 + WAITING);
        },
        { timeoutMs: 60_000 },
      );
      if (change === 'moved') await harness.receiver.waitFor(1 + WAITING, { timeoutMs: 60_000 });
      expect(pathsOf().filter((path) => path === '/old')).toHaveLength(1);
      expect(await deliveriesOf(harness.database)).toHaveLength(change === 'moved' ? 1 + WAITING : 1);
    },
    150_000,
  );
});

describe('the cache of subscriptions', () => {
  const OF_ACCOUNT = 3;
  const subscription = (id: string): CachedSubscription => ({
    id,
    versionedId: `${id} 1`,
    name: 'x',
    eventTypes: ['job.run.errored'],
    jobIds: IdSet.fromArrayText('{}'),
    filters: null,
    isFull: false,
    target: { clientUrl: '', endpoint: '', secret: { current: '', rotation: null } } as Target,
  });
  const versionsOf = (accountId: number, version = '1') => ({
    accountId,
    version,
    plan: 'team' as const,
    deployment: 'multi_tenant' as const,
    subscriptionVersions: Array.from({ length: OF_ACCOUNT }, (_, n) => `wsu_${accountId}_${n} 1`),
  });
  /** @param accountsMax number of accounts that fit into the cache */
  function setUp(accountsMax = 10) {
    const loaded: number[] = [];
    const loadVersions = async (id: number) => {
      loaded.push(id);
      return id === 404 ? null : versionsOf(id);
    };
    const loadSubscription = async (id: string) => subscription(id);
    const subscriptions = Array.from({ length: OF_ACCOUNT }, (_, n) => subscription(`wsu_1_${n}`));
    const bytesMax = accountsMax * estimateBytes({ subscriptions });
    return { loaded, cache: new SubscriptionCache({ loadVersions, loadSubscription, bytesMax }) };
  }

  test('shares one load among concurrent events, and loads nothing for later ones', async () => {
    const { loaded, cache } = setUp();
    await Promise.all([cache.get(1), cache.get(1), cache.get(2)]);
    await cache.get(1);
    expect(loaded).toEqual([1, 2]);
  });

  test('is bounded, and evicts the least recently used account', async () => {
    const { loaded, cache } = setUp(3);
    for (const id of [1, 2, 3, 1, 4]) await cache.get(id);
    await cache.get(1);
    expect(loaded).toEqual([1, 2, 3, 4]);
    await cache.get(2);
    expect(loaded).toEqual([1, 2, 3, 4, 2]);
  });

  test('loads an account again that did not exist', async () => {
    const { loaded, cache } = setUp();
    expect(await cache.get(404)).toBeNull();
    expect(await cache.get(404)).toBeNull();
    expect(loaded).toEqual([404, 404]);
  });

  test('does not discard a newly loaded account for a late caller with a previous version', async () => {
    const { loaded, cache } = setUp();
    await cache.get(1);
    cache.invalidate(versionsOf(1, '0'));
    await cache.get(1);
    expect(loaded).toEqual([1]);
    cache.invalidate(versionsOf(1));
    await cache.get(1);
    expect(loaded).toEqual([1, 1]);
  });
});
