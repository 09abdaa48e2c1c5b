import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import { createQueueBackend, openRedis } from '../src/index.ts';
import {
  freePort,
  makeCertificates,
  type RedisProcess,
  send,
  startCluster,
  startServer,
} from './redis-servers.ts';

const describeWithRedis = findRedisServer() === null ? describe.skip : describe;
if (findRedisServer() === null) {
  process.stderr.write('\nCluster, Sentinel and TLS were not tried: no redis-server is on the path\n');
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

interface Work {
  number: number;
}

/** Two workers that do not know each other, and a producer. Jobs may fail once, and be delayed by that. */
function openWork(queueUrl: string) {
  const done: number[] = [];
  const takenBy = new Set<string>();
  const errors: Error[] = [];
  const backends = [createQueueBackend(queueUrl), createQueueBackend(queueUrl)];
  const workers = backends.map((backend, index) => {
    const worker = backend.createWorker<Work>(
      'work',
      async (job) => {
        takenBy.add(`worker ${index}`);
        if (job.data.number === 1 && job.attemptsMade === 0) throw new Error('the first attempt fails');
        done.push(job.data.number);
      },
      { concurrency: 1 },
    );
    return worker.on('error', (error) => errors.push(error));
  });
  const queue = (backends[0] as (typeof backends)[0]).createQueue<Work>('work');
  queue.on('error', (error) => errors.push(error));
  return {
    done,
    takenBy,
    add: (numbers: number[]) =>
      queue.addBulk(
        numbers.map((number) => ({
          name: 'work',
          data: { number },
          opts: { attempts: 2, backoff: { type: 'fixed', delay: 50 }, removeOnComplete: true },
        })),
      ),
    counts: () => queue.getJobCounts(),
    close: async () => {
      await Promise.all(workers.map((worker) => worker.close()));
      await queue.close();
    },
  };
}

async function expectWorking(queueUrl: string): Promise<void> {
  const numbers = Array.from({ length: 200 }, (_, index) => index + 1);
  const work = openWork(queueUrl);
  try {
    await work.add(numbers);
    await eventually(() => expect([...work.done].sort((a, b) => a - b)).toEqual(numbers), {
      timeoutMs: 15_000,
    });
    expect(work.takenBy).toEqual(new Set(['worker 0', 'worker 1']));
    await eventually(async () =>
      expect(await work.counts()).toMatchObject({ active: 0, waiting: 0, delayed: 0 }),
    );
  } finally {
    await work.close();
  }
}

/** What rate limits are counted with: a script that counts, and an expiry. */
async function expectCounting(queueUrl: string): Promise<void> {
  const redis = await openRedis(queueUrl, () => undefined);
  try {
    expect(redis.status).toBe('ready');
    for (const key of ['a', 'b', 'c']) {
      expect(await redis.eval("return redis.call('incr', KEYS[1])", 1, `count:${key}`)).toBe(1);
    }
  } finally {
    redis.disconnect();
  }
}

async function connectionsOf(port: number): Promise<number> {
  const clients = String(await send(port, ['CLIENT', 'LIST', 'TYPE', 'normal']));
  return clients.split('\n').filter((line) => line.includes('addr=') && !line.includes('cmd=client')).length;
}

describeWithRedis('a cluster of three nodes', () => {
  test('carries the queues, their retries and the counters, and no connection stays open', async () => {
    servers = await startCluster(folder);
    const nodes = servers.map(({ port }) => `127.0.0.1:${port}`);
    // One node is enough to find the others.
    await expectWorking(`redis+cluster://${nodes[0]}`);
    await expectCounting(`redis+cluster://${nodes.join(',')}`);
    await eventually(async () => {
      for (const { port } of servers) expect(await connectionsOf(port)).toBe(0);
    });
    // All keys of the queues are in one slot; the counters are spread.
    const sizes = await Promise.all(
      servers.map(async ({ port }) => (await send(port, ['KEYS', '{runhook}*'])) as string[]),
    );
    expect(sizes.filter((keys) => keys.length > 0)).toHaveLength(1);
  }, 60_000);
});

describeWithRedis('sentinels', () => {
  test('lead to the master, and to the new one when it is gone', async () => {
    const [first, second, sentinel] = [await freePort(), await freePort(), await freePort()];
    const auth = ['requirepass secret', 'masterauth secret'];
    const options = { password: 'secret' };
    const master = await startServer(folder, 'first', first, ['save ""', ...auth], { options });
    servers.push(master);
    servers.push(
      await startServer(folder, 'second', second, ['save ""', `replicaof 127.0.0.1 ${first}`, ...auth], {
        options,
      }),
    );
    const watch = [
      `sentinel monitor main 127.0.0.1 ${first} 1`,
      'sentinel auth-pass main secret',
      'sentinel down-after-milliseconds main 500',
      'sentinel failover-timeout main 2000',
      'requirepass watcher',
    ];
    const sentinelOptions = { options: { password: 'watcher' }, isSentinel: true };
    servers.push(await startServer(folder, 'sentinel', sentinel, watch, sentinelOptions));
    const knowsReplica = async () => {
      const replicas = (await send(sentinel, ['SENTINEL', 'REPLICAS', 'main'], {
        password: 'watcher',
      })) as unknown[];
      expect(replicas).toHaveLength(1);
    };
    await eventually(knowsReplica, { timeoutMs: 20_000, intervalMs: 100 });
    await eventually(
      async () => expect(String(await send(first, ['INFO', 'replication'], options))).toMatch(/state=online/),
      { timeoutMs: 20_000, intervalMs: 100 },
    );
    const url = `redis+sentinel://:secret@127.0.0.1:${sentinel}/main?sentinelPassword=watcher`;
    await expectWorking(url);
    await expectCounting(url);

    const work = openWork(url);
    try {
      await work.add([10]);
      await eventually(() => expect(work.done).toEqual([10]), { timeoutMs: 10_000 });
      await master.kill();
      const isMaster = async () => {
        const info = String(await send(second, ['INFO', 'replication'], options));
        expect(info).toMatch(/role:master/);
      };
      await eventually(isMaster, { timeoutMs: 20_000, intervalMs: 100 });
      // While the change is under way a call may fail; the caller tries again, as the services do.
      await eventually(() => work.add([11]), { timeoutMs: 20_000 });
      await eventually(() => expect(work.done).toContain(11), { timeoutMs: 20_000 });
    } finally {
      await work.close();
    }
  }, 90_000);
});

describeWithRedis('TLS', () => {
  test('is spoken, with our own authority and client certificates, and an unknown authority is refused', async () => {
    const { ca, cert, key } = await makeCertificates(folder);
    const port = await freePort();
    const flags = [
      'save ""',
      `tls-port ${port}`,
      `tls-ca-cert-file ${ca}`,
      `tls-cert-file ${cert}`,
      `tls-key-file ${key}`,
      'tls-auth-clients yes',
    ];
    const tls = { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key) };
    servers.push(await startServer(folder, 'tls', 0, flags, { options: { tls } }));
    const url = `rediss://127.0.0.1:${port}?caFile=${ca}&certFile=${cert}&keyFile=${key}`;
    await expectWorking(url);
    await expectCounting(url);

    const errors: Error[] = [];
    const untrusting = await openRedis(
      `rediss://127.0.0.1:${port}?certFile=${cert}&keyFile=${key}`,
      (error) => errors.push(error),
    );
    untrusting.disconnect();
    expect(untrusting.status).not.toBe('ready');
    expect(errors.map((error) => (error as NodeJS.ErrnoException).code)).toContain(
      'SELF_SIGNED_CERT_IN_CHAIN',
    );
  }, 60_000);
});
