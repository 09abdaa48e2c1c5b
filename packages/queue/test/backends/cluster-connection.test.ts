import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { withinDeadline } from '@runhook/runtime/timers';
import { EXAMPLE_JOB, eventually, exampleEvent } from '@runhook/testing';
import { Queue, Worker } from 'bullmq';
import { Cluster } from 'ioredis';
import { openRedisConnection } from '../../src/backends/redis/connection.ts';
import { createQueueBackend, openEventQueue } from '../../src/index.ts';
import { withWaitDeadlines } from '../../src/patches/bullmq/wait-deadlines.ts';
import {
  countConnections,
  type RedisProcess,
  startCluster,
  TEST_TIMEOUT_MS,
  WITHIN_TEST_TIMEOUT,
} from './redis-servers.ts';

const describeWithRedis = findRedisServer() === null ? describe.skip : describe;
if (findRedisServer() === null) {
  process.stderr.write('\nConnections to a cluster were not tried: no redis-server is on the path\n');
}

let folder: string;
let servers: RedisProcess[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runhook-redis-'));
  servers = [];
});
afterEach(async () => {
  for (const server of servers) await server.kill();
  await rm(folder, { recursive: true, force: true });
});

describeWithRedis('connections to a cluster that are closed while they open', () => {
  /** Iterations of the event loop before the close: none, a few, and as many as make a connection nearly ready. */
  const CLOSED_AFTER_ITERATIONS = Array.from({ length: 20 }, (_, index) => index * 4);

  /** Fails with the name of the operation that does not end. */
  async function expectToEnd(what: string, work: () => Promise<unknown>): Promise<void> {
    await withinDeadline(WITHIN_TEST_TIMEOUT.timeoutMs, work).catch((cause: unknown) => {
      throw new Error(`${what} did not end`, { cause });
    });
  }

  async function waitIterations(count: number): Promise<void> {
    for (let iteration = 0; iteration < count; iteration += 1)
      await new Promise((resolve) => setImmediate(resolve));
  }

  // An unhandled rejection fails the test.
  test(
    'leave no unhandled error and no open connection',
    async () => {
      servers = await startCluster(folder);
      const url = `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
      const event = exampleEvent('job.run.started', EXAMPLE_JOB);
      const kinds: Record<string, () => { opened: Promise<unknown>; close: () => Promise<unknown> }> = {
        queue: () => {
          const queue = createQueueBackend(url).createQueue('closed');
          queue.on('error', () => undefined);
          return { opened: queue.add('job', {}), close: () => queue.close() };
        },
        worker: () => {
          const worker = createQueueBackend(url).createWorker('closed', async () => undefined, {});
          worker.on('error', () => undefined);
          return { opened: worker.waitUntilReady(), close: () => worker.close() };
        },
        publisher: () => {
          const queue = openEventQueue(createQueueBackend(url), () => undefined);
          return { opened: queue.add([event]), close: () => queue.close() };
        },
        'separate connection': () => {
          const redis = openRedisConnection(url, () => undefined);
          return { opened: redis, close: async () => (await redis).disconnect() };
        },
      };
      for (const [kind, open] of Object.entries(kinds)) {
        await Promise.all(
          CLOSED_AFTER_ITERATIONS.map(async (count) => {
            const { opened, close } = open();
            const settled = opened.catch(() => undefined);
            await waitIterations(count);
            await expectToEnd(`closing a ${kind} after ${count} iterations of the event loop`, close);
            await expectToEnd(
              `opening a ${kind} that was closed after ${count} iterations of the event loop`,
              () => settled,
            );
          }),
        );
      }
      await eventually(async () => {
        for (const { port } of servers) expect(await countConnections(port)).toBe(0);
      }, WITHIN_TEST_TIMEOUT);
    },
    TEST_TIMEOUT_MS,
  );
});

describeWithRedis('a worker that waits for a job on a cluster', () => {
  test(
    'continues after a wait that never settles',
    async () => {
      servers.push(...(await startCluster(folder)));
      const connect = () =>
        new Cluster(
          servers.map(({ port }) => ({ host: '127.0.0.1', port })),
          { redisOptions: { maxRetriesPerRequest: null } },
        );
      const clients = [connect(), connect()] as const;
      const processed: unknown[] = [];
      const options = { prefix: '{stuck}' };
      const queue = new Queue('stuck', { ...options, connection: clients[0] });
      const plain = new Worker('stuck', async ({ data }) => processed.push(data), {
        ...options,
        ...{ connection: clients[1], drainDelay: 1, autorun: false },
      });
      // Simulates the state found after a failover: a wait that never settles.
      let isStuck = false;
      let stuckCalls = 0;
      const backend = plain.getBackend();
      const wait = backend.waitForJob.bind(backend);
      backend.waitForJob = (seconds) => {
        if (!isStuck) return wait(seconds);
        stuckCalls += 1;
        return new Promise(() => undefined);
      };
      const worker = withWaitDeadlines(plain, 300);
      void worker.run();
      worker.on('error', () => undefined);
      try {
        await worker.waitUntilReady();
        await queue.add('job', 'before');
        await eventually(() => expect(processed).toEqual(['before']), WITHIN_TEST_TIMEOUT);
        isStuck = true;
        await eventually(() => expect(stuckCalls).toBeGreaterThan(0), WITHIN_TEST_TIMEOUT);
        isStuck = false;
        await queue.add('job', 'after');
        await eventually(() => expect(processed).toEqual(['before', 'after']), WITHIN_TEST_TIMEOUT);
      } finally {
        await worker.close(true);
        await queue.close();
        for (const client of clients) client.disconnect();
      }
    },
    TEST_TIMEOUT_MS,
  );
});

describeWithRedis('a worker whose cluster connection ended', () => {
  test(
    'reconnects even if BullMQ never finishes reconnecting',
    async () => {
      servers.push(...(await startCluster(folder)));
      const client = new Cluster(
        servers.map(({ port }) => ({ host: '127.0.0.1', port })),
        { redisOptions: { maxRetriesPerRequest: null } },
      );
      const plain = new Worker('stuck', async () => undefined, {
        ...{ prefix: '{stuck}', connection: client, autorun: false },
      });
      plain.on('error', () => undefined);
      const backend = plain.getBackend() as unknown as {
        blockingClient: Promise<Cluster>;
        reconnectBlocking(): Promise<void>;
      };
      try {
        await plain.waitUntilReady();
        const waiting = await backend.blockingClient;
        backend.reconnectBlocking = () => new Promise(() => undefined);
        withWaitDeadlines(plain, 1_000);
        const ended = new Promise((resolve) => waiting.once('end', resolve));
        waiting.disconnect();
        await ended;
        // Simulates a client that waits for an end which was already emitted.
        waiting.status = 'disconnecting';
        await expect(backend.reconnectBlocking()).rejects.toThrow('did not end within');
        // The attempt to connect continues when it takes longer than the wait.
        await eventually(() => expect(waiting.status).toBe('ready'), WITHIN_TEST_TIMEOUT);
      } finally {
        await plain.close(true);
        client.disconnect();
      }
    },
    TEST_TIMEOUT_MS,
  );
});
