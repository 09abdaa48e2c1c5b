import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  eventJobId,
  JOB_RUN_EVENTS,
  ONE_SHARD,
  SHARDS_KEY,
  shardFields,
  shardOf,
  shardPrefix,
  spreadSlots,
} from '@runhook/contract';
import { createTestQueueUrl, EXAMPLE_JOB, eventually, exampleEvent, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { SharedConcurrency } from '../src/backends/shared-concurrency.ts';
import {
  createQueueBackend,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
  openRedis,
  openShardAdmin,
  parseShards,
  type QueueBackend,
  type ShardAdmin,
} from '../src/index.ts';

type Redis = NonNullable<Awaited<ReturnType<typeof openRedis>>>;

const eventOf = (accountId: number) =>
  exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: accountId });
const EIGHT_SHARDS = spreadSlots(ONE_SHARD, [[0, 1, 2, 3, 4, 5, 6, 7]]);
/** One account for each of eight shards, in their order. */
const ACCOUNTS = Array.from({ length: 8 }, (_, shard) => {
  let accountId = 1;
  while (shardOf(EIGHT_SHARDS, accountId) !== shard) accountId += 1;
  return accountId;
});
const silent = () => undefined;

describe('the list of shards that a process serves', () => {
  test.each([
    ['0-7', [0, 1, 2, 3, 4, 5, 6, 7]],
    ['0,3, 5-6', [0, 3, 5, 6]],
    ['63,1,1-2', [1, 2, 63]],
  ])('is parsed from %s', (text, shards) => expect(parseShards(text)).toEqual(shards));

  test.each([
    ['', 'shards are named as 0-7 or 0,3,5-6'],
    ['1,', 'shards are named as 0-7 or 0,3,5-6'],
    ['-1', 'shards are named as 0-7 or 0,3,5-6'],
    ['all', 'shards are named as 0-7 or 0,3,5-6'],
    ['5-3', 'a range of shards begins with its lower number'],
    ['0-64', 'the highest shard is 63'],
  ])('is rejected if it is "%s"', (text, sentence) => expect(() => parseShards(text)).toThrow(sentence));
});

test('a released slot goes to the waiting shard with the fewest jobs in flight, and the limit is not exceeded', async () => {
  const sharedConcurrency = new SharedConcurrency(4);
  const [many, few] = [sharedConcurrency.addWorker(), sharedConcurrency.addWorker()];
  for (let job = 0; job < 4; job += 1) expect(many.acquire()).toBeUndefined();
  const started: string[] = [];
  const waits = (['many', 'few'] as const).flatMap((name) =>
    Array.from({ length: 4 }, () => (name === 'many' ? many : few).acquire()?.then(() => started.push(name))),
  );
  expect(waits).not.toContain(undefined);
  for (const slot of [many, many, many, few]) {
    slot.release();
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(started).toEqual(['few', 'few', 'many', 'few']);
});

test('a worker prefetches fewer jobs the more events a job has, but at least one', () => {
  const sharedConcurrency = new SharedConcurrency(300);
  const [slot, other] = [sharedConcurrency.addWorker(), sharedConcurrency.addWorker()];
  const fetchedAhead = () => slot.allowance() - slot.activeCount;
  slot.acquire();
  expect(fetchedAhead()).toBe(48);
  for (let job = 0; job < 100; job += 1) sharedConcurrency.noteBatchSize(20);
  expect(fetchedAhead()).toBe(2);
  other.acquire();
  for (let job = 0; job < 100; job += 1) sharedConcurrency.noteBatchSize(200);
  expect(fetchedAhead()).toBe(1);
  for (let job = 0; job < 100; job += 1) sharedConcurrency.noteBatchSize(1);
  expect(fetchedAhead()).toBe(24);
});

const describeOnRedis = process.env.TEST_REDIS_URL === undefined ? describe.skip : describe;
if (process.env.TEST_REDIS_URL === undefined)
  process.stderr.write('\nshards of the queue are not tested: there is no Redis\n');

describeOnRedis('a queue with shards', () => {
  const closers: (() => Promise<unknown>)[] = [];
  let url: string;
  let redis: Redis;
  let backend: QueueBackend;
  let shardAdmin: ShardAdmin;
  let events: EventQueue;

  beforeEach(async () => {
    url = await createTestQueueUrl({ name: 'Redis' }, '');
    redis = (await openRedis(url, silent)) as Redis;
    closers.push(async () => redis.disconnect());
    backend = createQueueBackend(url, { callMs: WAIT_TIMEOUT_MS });
    shardAdmin = openShardAdmin(backend, silent, 0);
    closers.push(() => shardAdmin.close());
    events = openQueue();
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  function openQueue(of = backend): EventQueue {
    const opened = openEventQueue(of, silent);
    closers.push(() => opened.close());
    return opened;
  }
  const waiting = (shard: number) => redis.llen(`${shardPrefix(shard)}:${JOB_RUN_EVENTS}:wait`);
  const countWaitingByShard = () => Promise.all(ACCOUNTS.map((_, shard) => waiting(shard)));

  test('adds each event to the shard of its account, combines events of a shard, and counts the jobs of all shards', async () => {
    expect(await shardAdmin.spread(8)).toEqual(EIGHT_SHARDS);
    await events.add(ACCOUNTS.flatMap((accountId) => [eventOf(accountId), eventOf(accountId)]));
    expect(await countWaitingByShard()).toEqual(new Array(8).fill(1));
    for (const [shard, accountId] of ACCOUNTS.entries()) {
      const [id] = await redis.lrange(`${shardPrefix(shard)}:${JOB_RUN_EVENTS}:wait`, 0, -1);
      const data = JSON.parse(
        (await redis.hget(`${shardPrefix(shard)}:${JOB_RUN_EVENTS}:${id}`, 'data')) ?? '',
      );
      expect(data.events).toMatchObject([{ accountId }, { accountId }]);
    }
    expect(await events.counts()).toMatchObject({ waiting: 8 });
    expect(await events.peek(3)).toHaveLength(3);
    await events.discard(await events.peek(100));
    expect(await events.counts()).toMatchObject({ waiting: 0 });
    expect((await events.findForeignPublishers()).foreignQueues).toEqual([]);
  });

  test('adds deliveries and lanes to the shard of their account, and finds them in any shard', async () => {
    const deliveries = openDeliveryQueue(backend, silent);
    closers.push(() => deliveries.close());
    const queued = ACCOUNTS.map((accountId, index) => ({
      deliveryId: `wdl_${index}`,
      cycle: 0,
      accountId,
      delayMs: 60_000,
      attemptsLeft: 3,
    }));
    // Two deliveries are added before there are shards, and stay in shard 0.
    await deliveries.add(queued.slice(6));
    await shardAdmin.spread(8);
    await deliveries.add(queued.slice(0, 6));
    await deliveries.wakeLanes([{ subscriptionId: 'wsu_1', accountId: ACCOUNTS[5] as number }]);
    const delayed = await Promise.all(
      ACCOUNTS.map((_, shard) => redis.zcard(`${shardPrefix(shard)}:webhook-deliveries:delayed`)),
    );
    expect(delayed).toEqual([3, 1, 1, 1, 1, 1, 0, 0]);
    expect(await redis.llen(`${shardPrefix(5)}:webhook-deliveries:wait`)).toBe(1);
    expect((await deliveries.findQueued(queued)).size).toBe(8);
    expect(await deliveries.counts()).toMatchObject({ delayed: 8, waiting: 1 });
    expect(await deliveries.evictDelayed(100)).toBe(8);
  });

  test('finds the events of a publisher with a previous map until the publisher reads the new one', async () => {
    const account = ACCOUNTS[5] as number;
    const other = openQueue(createQueueBackend(url, { callMs: WAIT_TIMEOUT_MS }));
    await other.add([eventOf(account)]);
    await shardAdmin.spread(8);
    const late = eventOf(account);
    await other.add([late]);
    expect(await waiting(0)).toBe(2);
    expect(await events.findQueued([{ ...late, sinceMs: 0 }])).toEqual(new Set([eventJobId(late)]));
    await eventually(async () => {
      await other.add([eventOf(account)]);
      expect(await waiting(5)).toBeGreaterThan(0);
    });
  });

  test('drops a draining shard once it is empty, and serves one again that gets jobs', async () => {
    await shardAdmin.spread(8);
    await events.add([eventOf(ACCOUNTS[5] as number)]);
    expect((await shardAdmin.spread(1)).draining).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(await shardAdmin.reconcile()).toEqual({ dropped: [1, 2, 3, 4, 6, 7], found: [] });
    expect((await shardAdmin.refresh()).draining).toEqual([5]);
    await events.discard(await events.peek(1));
    expect(await shardAdmin.reconcile()).toEqual({ dropped: [5], found: [] });
    // Simulates a process that was halted for a minute between reading the map and the call.
    await redis.lpush(`${shardPrefix(3)}:${JOB_RUN_EVENTS}:wait`, 'late');
    expect(await shardAdmin.reconcile()).toEqual({ dropped: [], found: [3] });
    expect(await shardAdmin.refresh()).toEqual({ ...ONE_SHARD, version: 5, draining: [3] });
  });

  test('serves a draining shard for as long as a publisher may have the previous map', async () => {
    const lateAdmin = openShardAdmin(backend, silent);
    closers.push(() => lateAdmin.close());
    await lateAdmin.spread(2);
    await lateAdmin.spread(1);
    expect(await lateAdmin.reconcile()).toEqual({ dropped: [], found: [] });
    expect((await lateAdmin.refresh()).draining).toEqual([1]);
  });

  test('has one map after concurrent changes', async () => {
    const shardAdmins = Array.from({ length: 6 }, () => openShardAdmin(createQueueBackend(url), silent, 0));
    closers.push(() => Promise.all(shardAdmins.map((one) => one.close())));
    const maps = await Promise.all(shardAdmins.map((one) => one.spread(8)));
    for (const map of maps) expect(map).toEqual(EIGHT_SHARDS);
    await Promise.all(shardAdmins.map((one, index) => one.spread(index + 1)));
    const { version, slots } = await shardAdmin.refresh();
    expect(version).toBeGreaterThan(1);
    expect(Math.max(...slots)).toBeLessThan(6);
  });

  test('adds no job while the stored shard map is malformed', async () => {
    await redis.hset(SHARDS_KEY, { ...shardFields(EIGHT_SHARDS), slots: '[0]' });
    await expect(events.add([eventOf(1)])).rejects.toMatchObject({
      code: 'queue_unavailable',
      cause: { message: `${SHARDS_KEY} does not contain a shard map` },
    });
  });

  test('has one connection for all producers, one for all workers, and one for the waits of each worker', async () => {
    await shardAdmin.spread(8);
    await events.add(ACCOUNTS.map(eventOf));
    const workers = ACCOUNTS.map((_, shard) =>
      backend.createWorker('work', async () => undefined, {}, shard),
    );
    for (const worker of workers) worker.on('error', silent);
    closers.push(() => Promise.all(workers.map((worker) => worker.close())));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    const database = new URL(url).pathname.slice(1);
    const list = String(await redis.call('CLIENT', 'LIST')).split('\n');
    const ownConnections = list.filter((line) => line.includes(` db=${database} `));
    // One of them belongs to this test.
    expect(ownConnections).toHaveLength(1 + 1 + 8 + 1);
  });

  test('does not let a shard with hundreds of jobs delay one with ten, and observes the limit that the shards share', async () => {
    await shardAdmin.spread(8);
    const CONCURRENCY = 4;
    const many = backend.createQueue('fair', undefined, 1);
    const few = backend.createQueue('fair', undefined, 2);
    closers.push(() => Promise.all([many.close(), few.close()]));
    const jobs = (count: number) => Array.from({ length: count }, () => ({ name: 'job', data: {} }));
    await many.addBulk(jobs(600));
    const sharedConcurrency = new SharedConcurrency(CONCURRENCY);
    const done = { many: 0, few: 0 };
    let manyDoneAtLastFew = Number.NaN;
    let hasFew = false;
    let inFlight = 0;
    let inFlightMax = 0;
    const serve = (shard: number, kind: keyof typeof done) => {
      const worker = backend.createWorker(
        'fair',
        async () => {
          inFlight += 1;
          inFlightMax = Math.max(inFlightMax, inFlight);
          // The other shard gets its jobs while the first is being processed.
          if (!hasFew && done.many >= 50) {
            hasFew = true;
            await few.addBulk(jobs(10));
          }
          await new Promise((resolve) => setTimeout(resolve, 2));
          inFlight -= 1;
          done[kind] += 1;
          if (done.few === 10 && kind === 'few') manyDoneAtLastFew = done.many;
        },
        {},
        shard,
        sharedConcurrency,
      );
      worker.on('error', silent);
      closers.push(() => worker.close());
    };
    serve(2, 'few');
    serve(1, 'many');
    await eventually(() => expect(done).toEqual({ many: 600, few: 10 }));
    expect(inFlightMax).toBe(CONCURRENCY);
    // 50 jobs ended before, about as many ended as the other shard occupied slots, and some were prefetched.
    expect(manyDoneAtLastFew).toBeLessThan(250);
  });
});
