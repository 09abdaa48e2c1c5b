import { spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS } from '@runhook/contract';
import { findRedisServer } from '@runhook/embedded';
import { withinDeadline } from '@runhook/runtime/timers';
import { EXAMPLE_JOB, eventually, exampleEvent } from '@runhook/testing';
import { openRedisConnection } from '../../src/backends/redis/connection.ts';
import {
  createQueueBackend,
  type Job,
  openDeliveryQueue,
  openEventQueue,
  openShardAdmin,
  QueueUnavailableError,
  type Worker,
} from '../../src/index.ts';
import {
  countConnections,
  makeCertificates,
  type RedisProcess,
  send,
  startCluster,
  startServer,
  TEST_TIMEOUT_MS,
  WITHIN_TEST_TIMEOUT,
} from './redis-servers.ts';

const describeWithRedis = findRedisServer() === null ? describe.skip : describe;
if (findRedisServer() === null) {
  process.stderr.write('\nCluster, Sentinel and TLS were not tried: no redis-server is on the path\n');
}

/** Some servers are built without TLS, and exit with a message about it. */
const hasTls = !/Failed finding TLS support/.test(
  spawnSync(findRedisServer() ?? 'redis-server', ['--port', '0', '--tls-port', '1'], {
    encoding: 'utf8',
    timeout: TEST_TIMEOUT_MS,
  }).stdout,
);
if (!hasTls) process.stderr.write('\nTLS was not tried: this redis-server is built without it\n');
const describeWithTls = hasTls ? describeWithRedis : describe.skip;

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

/** Timeout of a call to a queue, as in the services. */
const CALL_MS = 10_000;

/**
 * Starts two independent workers and a producer. Each worker holds its first job until the other has one, so that both
 * get a share, unless `bothWork` is false. Job 1 fails once, which delays it.
 */
function openWork(queueUrl: string, { bothWork = true } = {}) {
  const done: number[] = [];
  const backends = [createQueueBackend(queueUrl), createQueueBackend(queueUrl)];
  const activeWorkers = new Set<number>();
  let startBoth = (): void => undefined;
  const bothStarted = new Promise<void>((resolve) => {
    startBoth = resolve;
  });
  if (!bothWork) startBoth();
  const workers = backends.map((backend, index) => {
    const worker = backend.createWorker<Work>(
      'work',
      async (job) => {
        activeWorkers.add(index);
        if (activeWorkers.size === backends.length) startBoth();
        await bothStarted;
        if (job.data.number === 1 && job.attemptsMade === 0) throw new Error('the first attempt fails');
        done.push(job.data.number);
      },
      { concurrency: 1 },
    );
    return worker.on('error', () => undefined);
  });
  const queue = (backends[0] as (typeof backends)[0]).createQueue<Work>('work');
  queue.on('error', () => undefined);
  return {
    done,
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
    await eventually(
      () => expect([...work.done].sort((a, b) => a - b)).toEqual(numbers),
      WITHIN_TEST_TIMEOUT,
    );
    await eventually(
      async () => expect(await work.counts()).toMatchObject({ active: 0, waiting: 0, delayed: 0 }),
      WITHIN_TEST_TIMEOUT,
    );
  } finally {
    await work.close();
  }
}

/** Checks that a script counts, as those of rate limits do. */
async function expectCounting(queueUrl: string): Promise<void> {
  const redis = await openRedisConnection(queueUrl, () => undefined);
  try {
    // `openRedisConnection` resolves after a second even without a connection, and rejects replies that take 500 ms. A slow
    // machine causes both, so the checks are repeated.
    await eventually(() => expect(redis.status).toBe('ready'), WITHIN_TEST_TIMEOUT);
    let key = 0;
    for (let counted = 0; counted < 3; counted += 1) {
      const count = () => redis.eval("return redis.call('incr', KEYS[1])", 1, `count:${key++}`);
      expect(await eventually(count, WITHIN_TEST_TIMEOUT)).toBe(1);
    }
  } finally {
    redis.disconnect();
  }
}

/** Checks that foreign publishers are found although their prefixes have keys on any of the nodes. */
async function expectForeignPublishersFound(queueUrl: string): Promise<void> {
  const redis = await openRedisConnection(queueUrl, () => undefined);
  const backend = createQueueBackend(queueUrl, { callMs: WITHIN_TEST_TIMEOUT.timeoutMs });
  const queue = backend.createQueue('work');
  try {
    await eventually(() => expect(redis.status).toBe('ready'), WITHIN_TEST_TIMEOUT);
    const expected = ['a', 'b', 'c', 'd', 'bull'].map((prefix) => ({ prefix, jobs: 1 }));
    for (const { prefix } of expected) {
      if (prefix !== 'bull') await redis.incr(`${prefix}:work:id`);
      await redis.lpush(`${prefix}:work:wait`, '1');
    }
    const found = (await backend.findForeignPublishers(queue)).foreignQueues.sort((a, b) =>
      a.prefix.localeCompare(b.prefix),
    );
    expect(found).toEqual(expected.sort((a, b) => a.prefix.localeCompare(b.prefix)));
  } finally {
    redis.disconnect();
    await queue.close();
  }
}

/** Checks that each master has the same number of slots, or one more, and that workers take all jobs of the shards. */
async function expectSpread(queueUrl: string, ports: readonly number[]): Promise<void> {
  const ACCOUNTS = 300;
  const backend = createQueueBackend(queueUrl, { callMs: WITHIN_TEST_TIMEOUT.timeoutMs });
  const shardAdmin = openShardAdmin(backend, () => undefined, 0);
  const events = openEventQueue(backend, () => undefined);
  const workers: Worker[] = [];
  try {
    const map = await shardAdmin.spread(8);
    const countSlots = (shards: readonly number[]) =>
      map.slots.filter((shard) => shards.includes(shard)).length;
    const taken = new Set<number>();
    for (let shard = 0; shard < 8; shard += 1) {
      const take = async ({ data }: Job<{ accountId: number }>) => taken.add(data.accountId);
      const worker = backend.createWorker<{ accountId: number }>(JOB_RUN_EVENTS, take, {}, shard);
      workers.push(worker.on('error', () => undefined) as Worker);
    }
    const eventOf = (accountId: number) =>
      exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: accountId });
    await events.addEach(Array.from({ length: ACCOUNTS }, (_, index) => eventOf(index + 1)));
    await eventually(() => expect(taken.size).toBe(ACCOUNTS), WITHIN_TEST_TIMEOUT);
    const found = ports.map(async (port) => {
      const keys = (await send(port, ['KEYS', `{runhook*}:${JOB_RUN_EVENTS}:id`])) as string[];
      return keys.map((key) => Number(/:(\d+)\}/.exec(key)?.[1] ?? 0)).sort();
    });
    const shardsOfMasters = await Promise.all(found);
    expect(shardsOfMasters.map((shards) => shards.length).sort()).toEqual([2, 3, 3]);
    expect(shardsOfMasters.map(countSlots).sort()).toEqual([341, 341, 342]);
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await events.close();
    await shardAdmin.close();
  }
}

describeWithRedis('a cluster of three nodes', () => {
  test(
    'serves the queues, their retries and the counters, and no connection stays open',
    async () => {
      servers = await startCluster(folder);
      const nodes = servers.map(({ port }) => `127.0.0.1:${port}`);
      const keysOf = () =>
        Promise.all(servers.map(async ({ port }) => (await send(port, ['KEYS', '{runhook*'])) as string[]));
      // The client discovers the other nodes from one.
      await expectWorking(`redis+cluster://${nodes[0]}`);
      await expectCounting(`redis+cluster://${nodes.join(',')}`);
      await expectForeignPublishersFound(`redis+cluster://${nodes[0]}`);
      const keysOfOneQueue = (await keysOf()).filter((keys) => keys.length > 0);
      await expectSpread(
        `redis+cluster://${nodes[0]}`,
        servers.map(({ port }) => port),
      );
      await eventually(async () => {
        for (const { port } of servers) expect(await countConnections(port)).toBe(0);
      }, WITHIN_TEST_TIMEOUT);
      // All keys of a shard are in one slot; counters are distributed.
      expect(keysOfOneQueue).toHaveLength(1);
    },
    TEST_TIMEOUT_MS,
  );
});

describeWithRedis('sentinels', () => {
  test(
    'lead clients to the master, and to the new one after a failover',
    async () => {
      const options = { password: 'secret' };
      const conf = (port: number) => [`port ${port}`, 'save ""', 'requirepass secret', 'masterauth secret'];
      const master = await startServer({ folder, name: 'first', conf });
      const first = master.port;
      servers.push(master);
      const replicaConf = (port: number) => [...conf(port), `replicaof 127.0.0.1 ${first}`];
      const replica = await startServer({ folder, name: 'second', conf: replicaConf });
      const second = replica.port;
      servers.push(replica);
      const watcher = await startServer({
        folder,
        name: 'sentinel',
        conf: (port) => [
          `port ${port}`,
          `sentinel monitor main 127.0.0.1 ${first} 1`,
          'sentinel auth-pass main secret',
          'sentinel down-after-milliseconds main 2000',
          'sentinel failover-timeout main 2000',
          'requirepass watcher',
        ],
        isSentinel: true,
      });
      const sentinel = watcher.port;
      servers.push(watcher);
      const hasReplica = async () => {
        const replicas = (await send(sentinel, ['SENTINEL', 'REPLICAS', 'main'], {
          password: 'watcher',
        })) as unknown[];
        expect(replicas).toHaveLength(1);
      };
      await eventually(hasReplica, WITHIN_TEST_TIMEOUT);
      await eventually(
        async () =>
          expect(String(await send(first, ['INFO', 'replication'], options))).toMatch(/state=online/),
        WITHIN_TEST_TIMEOUT,
      );
      const url = `redis+sentinel://:secret@127.0.0.1:${sentinel}/main?sentinelPassword=watcher`;
      await expectWorking(url);
      await expectCounting(url);

      const work = openWork(url, { bothWork: false });
      try {
        await work.add([10]);
        await eventually(() => expect(work.done).toEqual([10]), WITHIN_TEST_TIMEOUT);
        await master.kill();
        const isMaster = async () => {
          const info = String(await send(second, ['INFO', 'replication'], options));
          expect(info).toMatch(/role:master/);
        };
        await eventually(isMaster, WITHIN_TEST_TIMEOUT);
        // During the failover a call may fail or get no reply: the caller sets a timeout and retries.
        await eventually(() => withinDeadline(CALL_MS, () => work.add([11])), WITHIN_TEST_TIMEOUT);
        await eventually(() => expect(work.done).toContain(11), WITHIN_TEST_TIMEOUT);
      } finally {
        await work.close();
      }
    },
    TEST_TIMEOUT_MS,
  );
});

describeWithTls('TLS', () => {
  test(
    'is used as soon as the certificates exist, even if the first call of the queue preceded them',
    async () => {
      const { ca, cert, key } = await makeCertificates(folder);
      const conf = (port: number) => [
        'port 0',
        'save ""',
        `tls-port ${port}`,
        `tls-ca-cert-file ${ca}`,
        `tls-cert-file ${cert}`,
        `tls-key-file ${key}`,
        'tls-auth-clients no',
      ];
      const server = await startServer({ folder, name: 'tls-late', conf });
      servers.push(server);
      const mounted = join(folder, 'mounted-late.pem');
      const backend = createQueueBackend(`rediss://127.0.0.1:${server.port}?caFile=${mounted}`);
      const queue = openDeliveryQueue(backend, () => undefined);
      try {
        await expect(queue.counts()).rejects.toBeInstanceOf(QueueUnavailableError);
        await copyFile(ca, mounted);
        expect(await queue.counts()).toMatchObject({ waiting: 0 });
      } finally {
        await queue.close();
      }
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'works with a private authority and client certificates, and rejects an unknown authority',
    async () => {
      const { ca, cert, key } = await makeCertificates(folder);
      const conf = (port: number) => [
        'port 0',
        'save ""',
        `tls-port ${port}`,
        `tls-ca-cert-file ${ca}`,
        `tls-cert-file ${cert}`,
        `tls-key-file ${key}`,
        'tls-auth-clients yes',
      ];
      const server = await startServer({ folder, name: 'tls', conf });
      servers.push(server);
      const { port } = server;
      const url = `rediss://127.0.0.1:${port}?caFile=${ca}&certFile=${cert}&keyFile=${key}`;
      await expectWorking(url);
      await expectCounting(url);

      const codes: (string | undefined)[] = [];
      const untrusting = await openRedisConnection(
        `rediss://127.0.0.1:${port}?certFile=${cert}&keyFile=${key}`,
        (error: NodeJS.ErrnoException) => codes.push(error.code),
      );
      try {
        await eventually(() => expect(codes).toContain('SELF_SIGNED_CERT_IN_CHAIN'), WITHIN_TEST_TIMEOUT);
        expect(untrusting.status).not.toBe('ready');
      } finally {
        untrusting.disconnect();
      }
    },
    TEST_TIMEOUT_MS,
  );
});
