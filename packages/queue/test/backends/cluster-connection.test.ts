import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { withinDeadline } from '@runhook/runtime/timers';
import { eventually, exampleEvent } from '@runhook/testing';
import { openRedisBeside } from '../../src/backends/redis/connection.ts';
import { createQueueBackend, openEventQueue } from '../../src/index.ts';
import {
  connectionsOf,
  type RedisProcess,
  startCluster,
  TEST_TIMEOUT_MS,
  untilThen,
} from './redis-servers.ts';

const JOB = {
  id: 7,
  account_id: 1,
  name: 'Nightly build',
  project_id: 2,
  project_name: 'Warehouse',
  environment_id: 3,
  environment_name: 'Production',
};

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
  /** At once, after a few turns of the event loop, and when they are about to be ready. */
  const CLOSED_AFTER_TURNS = Array.from({ length: 40 }, (_, index) => index * 2);

  /** Names what did not end. */
  async function ends(what: string, work: () => Promise<unknown>): Promise<void> {
    await withinDeadline(untilThen.timeoutMs, work).catch((cause: unknown) => {
      throw new Error(`${what} did not end`, { cause });
    });
  }

  async function turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  // A rejection that nobody handles fails the test by itself.
  test(
    'leave nothing behind: neither an error that nobody handles nor a connection',
    async () => {
      servers = await startCluster(folder);
      const url = `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
      const event = exampleEvent('job.run.started', JOB);
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
        'connection beside them': () => {
          const redis = openRedisBeside(url, () => undefined);
          return { opened: redis, close: async () => (await redis).disconnect() };
        },
      };
      for (const [kind, open] of Object.entries(kinds)) {
        await Promise.all(
          CLOSED_AFTER_TURNS.map(async (count) => {
            const { opened, close } = open();
            const settled = opened.catch(() => undefined);
            await turns(count);
            await ends(`closing a ${kind} after ${count} turns`, close);
            await ends(`opening a ${kind} that was closed after ${count} turns`, () => settled);
          }),
        );
      }
      await eventually(async () => {
        for (const { port } of servers) expect(await connectionsOf(port)).toBe(0);
      }, untilThen);
    },
    TEST_TIMEOUT_MS,
  );
});
