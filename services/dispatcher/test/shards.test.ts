import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  JOB_RUN_EVENTS,
  mappedShards,
  ONE_SHARD,
  shardOf,
  shardPrefix,
  spreadSlots,
} from '@runhook/contract';
import { createEventPublisher } from '@runhook/publisher';
import { createQueueBackend, openRedis, openShardAdmin, type ShardAdmin } from '@runhook/queue';
import { eventually, exampleEvent, seedAccount, seedSubscription, type TestAccount } from '@runhook/testing';
import { readSettings } from '../src/settings.ts';
import { type Harness, openHarness } from './harness.ts';

type Redis = NonNullable<Awaited<ReturnType<typeof openRedis>>>;

const EIGHT_SHARDS = spreadSlots(ONE_SHARD, [[0, 1, 2, 3, 4, 5, 6, 7]]);
const silent = () => undefined;

test('invalid settings of shards are rejected, all of them in one error', () => {
  const read = (environment: NodeJS.ProcessEnv) => () => readSettings(environment);
  const onRedis = { QUEUE_URL: 'redis://127.0.0.1' };
  expect(read({ ...onRedis, QUEUE_SHARDS: '65', DISPATCHER_SHARDS: '3-1' })).toThrow(
    /QUEUE_SHARDS must be less than or equal to 64(?:.|\n)*DISPATCHER_SHARDS: a range of shards begins with its lower number/,
  );
  expect(read({ QUEUE_URL: 'postgres://127.0.0.1/db', QUEUE_SHARDS: '2', DISPATCHER_SHARDS: '0' })).toThrow(
    /QUEUE_SHARDS must be 1: a queue in PostgreSQL has one shard(?:.|\n)*DISPATCHER_SHARDS must not be set: a queue in PostgreSQL/,
  );
  expect(read({ QUEUE_URL: 'postgres://127.0.0.1/db', QUEUE_SHARDS: '1' })).not.toThrow('SHARDS');
});

const describeOnRedis = process.env.TEST_REDIS_URL === undefined ? describe.skip : describe;
if (process.env.TEST_REDIS_URL === undefined)
  process.stderr.write('\ndispatchers on shards are not tested: there is no Redis\n');

describeOnRedis('dispatchers on a queue with shards', () => {
  const closers: (() => Promise<unknown>)[] = [];
  let harness: Harness;
  let redis: Redis;
  let shardAdmin: ShardAdmin;
  let accounts: TestAccount[];

  beforeEach(async () => {
    harness = await openHarness({ name: 'Redis' });
    closers.push(() => harness.close());
    redis = (await openRedis(harness.queueUrl, silent)) as Redis;
    closers.push(async () => redis.disconnect());
    shardAdmin = openShardAdmin(createQueueBackend(harness.queueUrl), silent, 0);
    closers.push(() => shardAdmin.close());
    accounts = [];
    const shards = new Set<number>();
    // Each of eight shards has at least one account.
    while (shards.size < 8) {
      const account = await seedAccount(harness.database);
      shards.add(shardOf(EIGHT_SHARDS, account.id));
      accounts.push(account);
      await seedSubscription(harness.database, {
        accountId: account.id,
        clientUrl: `${harness.receiver.url}/${account.id}`,
      });
    }
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const eventOf = (account: TestAccount | undefined) =>
    exampleEvent('job.run.started', account?.jobs[0] as TestAccount['jobs'][number]);
  const expectAllOnce = () => accounts.map(eventOf);
  /** Makes the first request of each tenth event fail. Returns the number of accepted requests of each event. */
  function acceptMost(): Map<string, number> {
    const counts = new Map<string, number>();
    const failed = new Set<string>();
    let seen = 0;
    harness.receiver.respondWith(({ headers }) => {
      const id = String(headers['webhook-id']);
      const isFirst = !counts.has(id) && !failed.has(id);
      if (isFirst) seen += 1;
      if (isFirst && seen % 10 === 0) {
        failed.add(id);
        return { status: 500 };
      }
      counts.set(id, (counts.get(id) ?? 0) + 1);
      return { status: 200 };
    });
    return counts;
  }

  test('change from one shard to eight and back under load without losing or repeating an event', async () => {
    const counts = acceptMost();
    const published = new Set<string>();
    let isFlowing = true;
    // Limits the number of undelivered events, which would grow on a busy machine.
    const undeliveredMax = 5 * accounts.length;
    const flow = (async () => {
      for (; isFlowing; await wait(50)) {
        if (published.size - counts.size > undeliveredMax) continue;
        for (const id of await harness.publisher.publishMany(expectAllOnce())) published.add(id);
      }
    })();
    const publishMore = async () => {
      const before = published.size;
      await eventually(() => expect(published.size).toBeGreaterThan(before + 5 * accounts.length));
    };
    const countJobsEver = (shard: number) =>
      redis.get(`${shardPrefix(shard)}:${JOB_RUN_EVENTS}:id`).then(Number);

    // On a busy machine a response may be slow, and the retry after a timeout would count as a repetition.
    const longTimeout = { deliveryTimeoutMs: 60_000 };
    await harness.startDispatcher(longTimeout);
    await publishMore();
    // Each dispatcher starts as in a rolling update. The first one has no setting and follows the map.
    const eight = await harness.startDispatcher({ ...longTimeout, queueShards: 8 });
    await eventually(async () => {
      for (let shard = 0; shard < 8; shard += 1) expect(await countJobsEver(shard)).toBeGreaterThan(3);
    });
    await publishMore();
    await harness.startDispatcher({ ...longTimeout, queueShards: 1 });
    await eight.stop();
    await publishMore();
    isFlowing = false;
    await flow;

    await eventually(() => expect(counts.size).toBe(published.size));
    await eventually(async () => {
      await shardAdmin.reconcile();
      expect(await shardAdmin.refresh()).toMatchObject({ draining: [] });
    });
    expect(mappedShards(await shardAdmin.refresh())).toEqual([0]);
    const repeated = [...counts].filter(([, count]) => count !== 1);
    expect(repeated).toEqual([]);
    expect([...published].filter((id) => !counts.has(id))).toEqual([]);
  });

  test('serve only their own shards, and the backlog includes the events of other shards', async () => {
    const map = await shardAdmin.spread(8);
    const isServed = ({ id }: TestAccount) => shardOf(map, id) < 4;
    const { port } = await harness.startDispatcher({ dispatcherShards: [0, 1, 2, 3] });
    await harness.publisher.publishMany(expectAllOnce());
    const served = accounts.filter(isServed).map(({ id }) => `/${id}`);
    const paths = () => harness.receiver.requests.map(({ path }) => path).sort();
    await harness.receiver.waitFor(served.length);
    await eventually(async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const waiting = /^runhook_backlog_jobs\{queue="job-run-events",state="waiting",.*\} (\d+)$/m.exec(
        metrics,
      );
      expect(Number(waiting?.[1])).toBeGreaterThan(0);
      const oldest = /^runhook_backlog_oldest_due_age_seconds\{queue="job-run-events",.*\} (\S+)$/m.exec(
        metrics,
      );
      expect(Number(oldest?.[1])).toBeGreaterThan(0);
    });
    expect(paths()).toEqual(served.sort());
    await harness.startDispatcher({ dispatcherShards: [4, 5, 6, 7] });
    await harness.receiver.waitFor(accounts.length);
    expect(paths()).toEqual(accounts.map(({ id }) => `/${id}`).sort());
  });

  test('distribute the accounts again after the Redis was emptied', async () => {
    await harness.startDispatcher({ queueShards: 4 });
    await redis.flushdb();
    await eventually(async () => expect(mappedShards(await shardAdmin.refresh())).toEqual([0, 1, 2, 3]));
    await eventually(async () => {
      const before = harness.receiver.requests.length;
      await harness.publisher.publishMany(expectAllOnce());
      await harness.receiver.waitFor(before + accounts.length);
    });
  });

  test('process jobs that a publisher adds by the previous map of shards', async () => {
    const late = createEventPublisher({ queueUrl: harness.queueUrl });
    closers.push(() => late.close());
    await shardAdmin.spread(8);
    await late.publishMany(expectAllOnce());
    await shardAdmin.spread(1);
    // The publisher does not check the map within this second.
    await late.publishMany(expectAllOnce());
    await harness.startDispatcher();
    await harness.receiver.waitFor(2 * accounts.length);
  });
});
