import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventJobId, JOB_RUN_EVENTS, ONE_SHARD, shardOf, shardPrefix, spreadSlots } from '@runhook/contract';
import { createEventPublisher, type EventPublisher } from '@runhook/publisher';
import {
  createQueueBackend,
  openEventQueue,
  openRedis,
  openShardAdmin,
  UnrecoverableError,
} from '@runhook/queue';
import { createTestQueueUrl, EXAMPLE_JOB, eventually, exampleEvent } from '@runhook/testing';
import { documentedRules } from './documented-rules.ts';

type Redis = NonNullable<Awaited<ReturnType<typeof openRedis>>>;

const KEY = `{runhook}:${JOB_RUN_EVENTS}`;
const connect = async (url: string) => (await openRedis(url, () => undefined)) as Redis;

/** Returns the reason why the restricted user cannot be tested here, or null. */
async function findSkipReason(): Promise<string | null> {
  const url = process.env.TEST_REDIS_URL;
  if (url === undefined) return 'there is no Redis';
  const redis = await connect(url);
  const version = /redis_version:(\d+)/.exec(await redis.info('server'))?.[1];
  redis.disconnect();
  return Number(version) >= 7 ? null : 'the Redis is older than 7';
}

const reason = await findSkipReason();
if (reason !== null) process.stderr.write(`publishers that may only add are not tested: ${reason}\n`);

/** Creates a user with the ACL rules and returns a URL that authenticates as that user. */
async function createUserUrl(
  adminClient: Redis,
  adminUrl: string,
  name: string,
  rules: readonly string[],
): Promise<string> {
  await adminClient.call('ACL', 'SETUSER', name, 'reset', ...rules);
  const url = new URL(adminUrl);
  url.username = name;
  url.password = 'a password of its own';
  return url.href;
}

(reason === null ? describe : describe.skip)('a publisher with the user of docs/security.md', () => {
  const user = `test_${randomBytes(6).toString('hex')}`;
  let adminUrl: string;
  let addOnlyUrl: string;
  let adminClient: Redis;
  let addOnlyClient: Redis;
  let publisher: EventPublisher;

  beforeAll(async () => {
    adminUrl = await createTestQueueUrl({ name: 'Redis' }, '');
    adminClient = await connect(adminUrl);
    const [reset, ...rules] = await documentedRules();
    expect(reset).toBe('reset');
    addOnlyUrl = await createUserUrl(adminClient, adminUrl, user, rules);
    addOnlyClient = await connect(addOnlyUrl);
    publisher = createEventPublisher({ queueUrl: addOnlyUrl });
    // Dispatchers call these regularly.
    const events = openEventQueue(createQueueBackend(adminUrl), () => undefined);
    await events.restoreSettings();
    await events.loadPublishFunction();
    await events.close();
  });
  afterAll(async () => {
    await publisher?.close();
    addOnlyClient?.disconnect();
    await adminClient.call('ACL', 'DELUSER', user);
    adminClient.disconnect();
  });

  const example = () => exampleEvent('job.run.started', EXAMPLE_JOB);
  const countWaiting = async () =>
    (await adminClient.llen(`${KEY}:wait`)) + (await adminClient.zcard(`${KEY}:prioritized`));

  const readJobs = async () => {
    const waiting = await adminClient.lrange(`${KEY}:wait`, 0, -1);
    const ids = [...waiting, ...(await adminClient.zrange(`${KEY}:prioritized`, 0, '-1'))];
    const jobs = await Promise.all(ids.map((id) => adminClient.hgetall(`${KEY}:${id}`)));
    return jobs.map(({ opts = '', timestamp: _, ...fields }, index) => {
      // BullMQ also stores what its caller passed, which no worker reads.
      const { jobId, timestamp: __, ...options } = JSON.parse(opts);
      return { id: ids[index], ...fields, options };
    });
  };

  test('can publish one event, more events than the burst limit, and events that are already queued', async () => {
    const event = example();
    await publisher.publish(event);
    await publisher.publishMany(Array.from({ length: 1_200 }, example));
    const before = await countWaiting();
    expect(before).toBeGreaterThanOrEqual(61);
    await publisher.publish(event);
    expect(await countWaiting()).toBe(before);
    const other = example();
    expect(await publisher.publishMany([event, other])).toEqual([event.eventId, other.eventId]);
  });

  test('can publish an event whose job is stored as failed, under an extended job id', async () => {
    const event = example();
    await publisher.publish(event);
    const worker = createQueueBackend(adminUrl).createWorker(
      JOB_RUN_EVENTS,
      async () => {
        throw new UnrecoverableError('malformed');
      },
      { concurrency: 50 },
    );
    worker.on('error', () => undefined);
    await eventually(async () => expect(await countWaiting()).toBe(0));
    await worker.close();
    expect(await adminClient.zscore(`${KEY}:failed`, eventJobId(event))).not.toBeNull();
    await publisher.publish(event);
    const [retriedId] = await adminClient.lrange(`${KEY}:wait`, 0, -1);
    expect(retriedId).toMatch(new RegExp(`^${eventJobId(event)}_\\d+$`));
    expect(JSON.parse((await adminClient.hget(`${KEY}:${retriedId}`, 'data')) ?? '')).toEqual(event);
  });

  test('makes the same jobs as a publisher with all rights', async () => {
    const single = example();
    const many = Array.from({ length: 50 }, example);
    const published = [];
    for (const url of [adminUrl, addOnlyUrl]) {
      await adminClient.flushdb();
      let taken = 0;
      // The last 25 events exceed the burst limit.
      const limiter = { take: () => ++taken <= 26 };
      const events = openEventQueue(createQueueBackend(url), () => undefined, undefined, limiter);
      await events.add([single]);
      await events.add(many);
      await events.close();
      published.push(await readJobs());
    }
    expect(published[1]).toEqual(published[0]);
    expect(published[1]?.map(({ options }) => options.priority)).toEqual([
      undefined,
      undefined,
      undefined,
      1,
      1,
    ]);
  });

  test('can neither run scripts, read or change jobs, nor reach other queues or the server', async () => {
    const event = example();
    await publisher.publish(event);
    const jobKey = `${KEY}:${eventJobId(event)}`;
    await adminClient.hset('{runhook}:webhook-deliveries:a-0', 'data', '{}');
    const before = await adminClient.dbsize();
    const script = (text: string) => ['EVAL', text, '1', `${KEY}:wait`];
    const loaded = String(await adminClient.script('LOAD', 'return 1'));
    const forbiddenCommands = [
      ['HGETALL', jobKey],
      ['HGET', jobKey, 'data'],
      ['HMGET', jobKey, 'data'],
      ['DUMP', jobKey],
      script(`return redis.call('HGET', '${jobKey}', 'data')`),
      script(`return redis.call('LRANGE', KEYS[1], 0, -1)`),
      script(`return redis.call('DEL', KEYS[1])`),
      script(`return redis.call('RPOP', KEYS[1])`),
      script(`redis.call('LPUSH', KEYS[1], 'a') while true do end`),
      ['EVALSHA', loaded, '1', `${KEY}:wait`],
      ['EVAL_RO', 'while true do end', '0'],
      ['SCRIPT', 'LOAD', 'return 1'],
      ['SCRIPT', 'FLUSH'],
      ['FUNCTION', 'LOAD', 'REPLACE', '#!lua name=runhook_publish'],
      ['FUNCTION', 'FLUSH'],
      ['FCALL', 'runhook_publish_1', '1', '{runhook}:webhook-deliveries:meta'],
      ['MULTI'],
      ['LRANGE', `${KEY}:wait`, '0', '-1'],
      ['RPOP', `${KEY}:wait`],
      ['XRANGE', `${KEY}:events`, '-', '+'],
      ['ZRANGE', `${KEY}:failed`, '0', '-1'],
      ['DEL', jobKey],
      ['UNLINK', jobKey],
      ['HDEL', jobKey, 'data'],
      ['EXPIRE', jobKey, '1'],
      ['RENAME', jobKey, 'a'],
      ['HMSET', `${KEY}:meta`, 'paused', '1'],
      ['HSET', `${KEY}:meta`, 'paused', '1'],
      ['SET', `${KEY}:id`, 'a'],
      ['LPUSH', '{runhook}:webhook-deliveries:wait', 'a-0'],
      ['HMSET', '{runhook}:webhook-deliveries:a-0', 'data', '{}'],
      ['EXISTS', '{runhook}:webhook-deliveries:a-0'],
      ['EVAL', 'return 1', '1', '{runhook}:webhook-deliveries:wait'],
      ['LPUSH', `bull:${JOB_RUN_EVENTS}:wait`, 'a'],
      ['KEYS', '*'],
      ['SCAN', '0'],
      ['RANDOMKEY'],
      ['FLUSHALL'],
      ['FLUSHDB'],
      ['CONFIG', 'GET', '*'],
      ['ACL', 'LIST'],
      ['CLIENT', 'LIST'],
      ['MONITOR'],
      ['SUBSCRIBE', 'a'],
      ['PUBLISH', 'a', 'b'],
      ['SHUTDOWN'],
      ['MIGRATE', '127.0.0.1', '1', jobKey, '0', '1'],
    ];
    for (const [name, ...args] of forbiddenCommands as [string, ...string[]][]) {
      const outcome = await addOnlyClient.call(name, ...args).catch((error: Error) => error.message);
      expect([name, ...args, outcome].join(' ')).toMatch(
        / (NOPERM|ERR The user executing the script can't|ERR ACL failure in script)[^\n]*$/,
      );
    }
    expect(await adminClient.dbsize()).toBe(before);
    expect(JSON.parse((await adminClient.hget(jobKey, 'data')) ?? '')).toEqual(event);
  });
});

/** The rules of docs/security.md of 0.1.0: scripts instead of the function, one shard, and no `+time`. */
const QUEUE_KEYS_0_1_0 = 'wait paused meta id completed delayed active events marker prioritized pc';
const RULES_0_1_0 = [
  ...['on', '>a password of its own', '+auth', '+hello', '+ping', '+select', '+info', '+multi', '+exec'],
  ...['+client|setname', '+cluster|slots', '+script|exists', '+script|load'],
  `(+eval +evalsha ${QUEUE_KEYS_0_1_0.replaceAll(/\w+/g, `~${KEY}:$&`)})`,
  `(+hget +hmget %R~${KEY}:meta)`,
  `(+incr ~${KEY}:id ~${KEY}:pc)`,
  `(+exists +hmset %W~${KEY}:wev_* %W~${KEY}:batch_*)`,
  `(+lpush +xadd +zadd ${'wait paused prioritized events marker'.replaceAll(/\w+/g, `%W~${KEY}:$&`)})`,
  `(+zcard +zscore %R~${KEY}:failed)`,
];

(reason === null ? describe : describe.skip)('a publisher on a queue with shards', () => {
  const names = ['now', 'before'].map((name) => `test_${name}_${randomBytes(6).toString('hex')}`);
  const closers: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });

  test('can add to the shard of an account, and with the ACL rules of a release without shards only while there is one shard', async () => {
    const adminUrl = await createTestQueueUrl({ name: 'Redis' }, '');
    const adminClient = await connect(adminUrl);
    closers.push(async () => adminClient.disconnect());
    closers.push(() => adminClient.call('ACL', 'DELUSER', ...names));
    const backend = createQueueBackend(adminUrl);
    const shardAdmin = openShardAdmin(backend, () => undefined);
    const events = openEventQueue(backend, () => undefined);
    closers.push(() => Promise.all([shardAdmin.close(), events.close()]));
    await events.restoreSettings();
    const [, ...rules] = await documentedRules();
    await events.loadPublishFunction();
    // The user is not permitted to read the server's clock either, so ids use the clock of the host, which is reported.
    const reported: string[] = [];
    const openPublisher = async (index: number, userRules: readonly string[]) => {
      const queueUrl = await createUserUrl(adminClient, adminUrl, names[index] as string, userRules);
      const publisher = createEventPublisher({ queueUrl, onError: ({ message }) => reported.push(message) });
      closers.push(() => publisher.close());
      return publisher;
    };
    const former = await openPublisher(1, RULES_0_1_0);
    const repeated = exampleEvent('job.run.started', EXAMPLE_JOB);
    await former.publish(repeated);
    await former.publish(repeated);
    expect(await adminClient.llen(`${KEY}:wait`)).toBe(1);
    await former.publish(exampleEvent('job.run.started', EXAMPLE_JOB));
    expect(await adminClient.llen(`${KEY}:wait`)).toBe(2);
    expect(reported).toEqual([expect.stringContaining('Give the user the ACL rule +time')]);

    const map = spreadSlots(ONE_SHARD, [[0, 1, 2, 3, 4, 5, 6, 7]]);
    await shardAdmin.spread(8);
    // Dispatchers call restoreSettings() regularly.
    await events.restoreSettings();
    let accountId = 1;
    while (shardOf(map, accountId) !== 5) accountId += 1;
    const event = exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: accountId });
    const publisher = await openPublisher(0, rules);
    await publisher.publish(event);
    await publisher.publish(event);
    expect(await adminClient.lrange(`${shardPrefix(5)}:${JOB_RUN_EVENTS}:wait`, 0, -1)).toEqual([
      eventJobId(event),
    ]);
    const late = await openPublisher(1, RULES_0_1_0);
    await expect(late.publish(event)).rejects.toThrow(
      'its user is not permitted to read the shard map: give it the rule (+hget +hmget %R~{runhook}:shards)',
    );
  });
});
