import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventJobId, JOB_RUN_EVENTS, shardOf, shardPrefix } from '@runhook/contract';
import { createEventPublisher, type PublishedEvent, QueueUnavailableError } from '@runhook/publisher';
import { createQueueBackend, openEventQueue, openShardAdmin } from '@runhook/queue';
import { EXAMPLE_JOB, eventually, exampleEvent } from '@runhook/testing';
import {
  hasRedisServer,
  type RedisProcess,
  send,
  startCluster,
  startServer,
  TEST_TIMEOUT_MS,
  WITHIN_TEST_TIMEOUT,
} from '../../queue/test/backends/redis-servers.ts';
import { documentedRules } from './documented-rules.ts';

const describeWithRedis = hasRedisServer ? describe : describe.skip;

const USER = 'runhook_publisher';
const LOGIN = `${USER}:a%20password%20of%20its%20own@`;
const conf = (port: number) => [`port ${port}`, 'save ""', 'maxmemory-policy noeviction'];
const eventOf = (accountId: number): PublishedEvent & { eventId: string } =>
  exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: accountId });

let folder: string;
let servers: RedisProcess[];
let closers: (() => Promise<unknown>)[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runhook-publish-'));
  servers = [];
  closers = [];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
  for (const server of servers) await server.kill();
  await rm(folder, { recursive: true, force: true });
});

async function start(name: string, lines: readonly string[] = []): Promise<number> {
  const server = await startServer({ folder, name, conf: (port) => [...conf(port), ...lines] });
  servers.push(server);
  return server.port;
}

/** Adds the user of docs/security.md to a server. */
async function addUser(port: number): Promise<void> {
  await send(port, ['ACL', 'SETUSER', USER, ...(await documentedRules())]);
}

function openPublisher(queueUrl: string) {
  const publisher = createEventPublisher({ queueUrl, onError: () => undefined });
  closers.push(() => publisher.close());
  return publisher;
}

/** Loads the function, as each dispatcher does regularly. */
async function load(queueUrl: string): Promise<void> {
  const events = openEventQueue(createQueueBackend(queueUrl), () => undefined);
  await events.loadPublishFunction();
  await events.close();
}

const isQueued = async (port: number, event: PublishedEvent & { eventId: string }, shard = 0) =>
  (await send(port, ['EXISTS', `${shardPrefix(shard)}:${JOB_RUN_EVENTS}:${eventJobId(event)}`])) === 1;

describeWithRedis('a publisher that may only add', () => {
  test(
    'waits for the function, and reports that the queue is not ready',
    async () => {
      const port = await start('queue');
      await addUser(port);
      const publisher = openPublisher(`redis://${LOGIN}127.0.0.1:${port}`);
      const event = eventOf(1);
      const publishing = publisher.publish(event);
      await eventually(async () => {
        expect(String(await send(port, ['INFO', 'commandstats']))).toMatch(
          /cmdstat_fcall:.*failed_calls=[1-9]/,
        );
      }, WITHIN_TEST_TIMEOUT);
      await load(`redis://127.0.0.1:${port}`);
      expect(await publishing).toBe(event.eventId);
      expect(await isQueued(port, event)).toBe(true);

      await send(port, ['FUNCTION', 'FLUSH']);
      const rejected = publisher.publish(eventOf(1));
      await expect(rejected).rejects.toThrow(QueueUnavailableError);
      await expect(rejected).rejects.toThrow(
        'its server has no function runhook_publish_1, which the dispatchers load',
      );
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'continues after a SCRIPT FLUSH and after a failover, without a dispatcher',
    async () => {
      const first = await start('first');
      const second = await start('second', [`replicaof 127.0.0.1 ${first}`]);
      const watcher = await startServer({
        folder,
        name: 'sentinel',
        conf: (port) => [`port ${port}`, `sentinel monitor main 127.0.0.1 ${first} 1`],
        isSentinel: true,
      });
      servers.push(watcher);
      for (const port of [first, second]) await addUser(port);
      await load(`redis://127.0.0.1:${first}`);
      const publisher = openPublisher(`redis+sentinel://${LOGIN}127.0.0.1:${watcher.port}/main`);
      const events = [eventOf(1), eventOf(1), eventOf(1)] as const;
      await publisher.publish(events[0]);
      await send(first, ['SCRIPT', 'FLUSH']);
      await publisher.publish(events[1]);
      expect(await send(first, ['WAIT', '1', '0'])).toBe(1);
      // A sentinel rejects the failover until it knows the replica.
      await eventually(() => send(watcher.port, ['SENTINEL', 'FAILOVER', 'main']), WITHIN_TEST_TIMEOUT);
      // Until then the old master accepts events and loses them.
      await eventually(
        async () => expect(String(await send(first, ['INFO', 'replication']))).toContain('role:slave'),
        WITHIN_TEST_TIMEOUT,
      );
      await eventually(() => publisher.publish(events[2]), WITHIN_TEST_TIMEOUT);
      await eventually(
        async () =>
          expect(await Promise.all(events.map((event) => isQueued(second, event)))).toEqual([
            true,
            true,
            true,
          ]),
        WITHIN_TEST_TIMEOUT,
      );
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'reaches the shards of each master of a cluster',
    async () => {
      servers = await startCluster(folder);
      const ports = servers.map(({ port }) => port);
      for (const port of ports) await addUser(port);
      const adminUrl = `redis+cluster://127.0.0.1:${ports[0]}`;
      const shardAdmin = openShardAdmin(
        createQueueBackend(adminUrl, { callMs: WITHIN_TEST_TIMEOUT.timeoutMs }),
        () => undefined,
        0,
      );
      closers.push(() => shardAdmin.close());
      const map = await shardAdmin.spread(8);
      await load(adminUrl);
      const publisher = openPublisher(`redis+cluster://${LOGIN}127.0.0.1:${ports[0]}`);
      const events = Array.from({ length: 40 }, (_, index) => eventOf(index + 1));
      for (const event of events) await publisher.publish(event);
      await publisher.publishMany(events);
      const counted = ports.map(async (port) => {
        const keys = (await send(port, ['KEYS', `{runhook*}:${JOB_RUN_EVENTS}:wev_*`])) as string[];
        return keys.length;
      });
      const counts = await Promise.all(counted);
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(40);
      expect(Math.min(...counts)).toBeGreaterThan(0);
      expect(new Set(events.map(({ accountId }) => shardOf(map, accountId))).size).toBe(8);
    },
    TEST_TIMEOUT_MS,
  );
});
