import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { migrate } from '@runhook/database/migrate';
import { startPostgres } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import {
  type RedisProcess,
  type ServerOptions,
  send,
  startServer,
} from '../../packages/queue/test/backends/redis-servers.ts';
import { Releases } from './releases.ts';
import { makeFolder, type Stores } from './servers.ts';

/** Time after which sentinels treat a Redis as down, which is the minimum wait of its clients. */
const DOWN_AFTER_MS = 2_000;
const SENTINELS = 3;
const QUORUM = 2;
const MASTER_NAME = 'main';

/** Location of a server; this machine's loopback when omitted. */
export type Place = Pick<ServerOptions, 'host' | 'within'>;

/** Is a Redis with a replica and three sentinels, and a PostgreSQL. */
export interface SentinelServers extends Stores {
  /** Stops the replica; the master continues without it. */
  stopReplica(): Promise<void>;
  /** Returns by how many bytes the replica is behind. */
  behindBytes(): Promise<number>;
  killMaster(): Promise<void>;
  /** Resumes the replica. Resolves when a quorum of the sentinels reports it as the master. */
  promoted(): Promise<void>;
  /** Restarts it on the same port, with its data. */
  restartMaster(): Promise<void>;
  /** Port of the first master. */
  firstPort: number;
  /** Returns the current role of the first master: `master` or `slave`. */
  roleOfFirst(): Promise<string>;
}

export interface SentinelPlaces {
  master: Place;
  replica: Place;
  sentinels: readonly Place[];
}

const LOOPBACK: SentinelPlaces = { master: {}, replica: {}, sentinels: Array(SENTINELS).fill({}) };

/** @param confOfServers additional lines of the configuration of Redis */
export async function startSentinelServers(confOfServers: readonly string[] = []): Promise<SentinelServers> {
  const releases = new Releases();
  try {
    const folder = await makeFolder(releases);
    const databaseUrl = await startRecord(folder, releases);
    return await startSentinels({ folder, databaseUrl, releases, confOfServers, places: LOOPBACK });
  } catch (error) {
    await releases.run();
    throw error;
  }
}

/** Starts a PostgreSQL with the tables. Resolves with its URL. */
export async function startRecord(folder: string, releases: Releases): Promise<string> {
  const postgres = await startPostgres({ dataDir: join(folder, 'postgres') });
  releases.add(() => postgres.stop());
  await migrate(postgres.url);
  return postgres.url;
}

export async function startSentinels({
  folder,
  databaseUrl,
  releases,
  confOfServers,
  places,
}: {
  folder: string;
  databaseUrl: string;
  releases: Releases;
  confOfServers: readonly string[];
  places: SentinelPlaces;
}): Promise<SentinelServers> {
  const hostOf = ({ host = '127.0.0.1' }: Place) => host;
  const durable = [
    'save ""',
    'appendonly yes',
    'appendfsync everysec',
    'protected-mode no',
    ...confOfServers,
  ];
  const start = (name: string, place: Place, conf: readonly string[], port?: number) =>
    startOwn({ folder, name, ...place, conf: (own) => [`port ${own}`, ...conf], ...(port && { port }) });

  let master = await start('master', places.master, durable);
  releases.add(() => master.kill());
  const first = { host: hostOf(places.master), port: master.port };
  const replica = await start('replica', places.replica, [
    ...durable,
    `replicaof ${first.host} ${first.port}`,
  ]);
  releases.add(() => replica.kill());
  const second = { host: hostOf(places.replica), port: replica.port };
  const sentinels: { host: string; port: number }[] = [];
  for (const [index, place] of places.sentinels.entries()) {
    const conf = [
      `sentinel monitor ${MASTER_NAME} ${first.host} ${first.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${MASTER_NAME} ${5 * DOWN_AFTER_MS}`,
      'protected-mode no',
    ];
    const sentinel = await startOwn({
      folder,
      name: `sentinel-${index}`,
      ...place,
      conf: (port) => [`port ${port}`, ...conf],
      isSentinel: true,
    });
    releases.add(() => sentinel.kill());
    sentinels.push({ host: hostOf(place), port: sentinel.port });
  }

  const ask = async ({ host, port }: typeof first, ...command: string[]) =>
    await send(port, command, { host });
  await eventually(async () => {
    for (const sentinel of sentinels) {
      const known = [
        await ask(sentinel, 'SENTINEL', 'REPLICAS', MASTER_NAME),
        await ask(sentinel, 'SENTINEL', 'SENTINELS', MASTER_NAME),
      ].map((list) => (list as unknown[]).length);
      if (known[0] !== 1 || known[1] !== SENTINELS - 1)
        throw new Error(`a sentinel reports ${known} replicas and sentinels`);
    }
    if (!/state=online/.test(String(await ask(first, 'INFO', 'replication'))))
      throw new Error('the master has no replica');
  });

  const fieldOf = async (server: typeof first, section: string, name: string) =>
    new RegExp(`^${name}:(\\S+)`, 'm').exec(String(await ask(server, 'INFO', section)))?.[1] ?? '';
  let offsetAtStop = 0;
  return {
    folder,
    databaseUrl,
    queueUrl: `redis+sentinel://${sentinels.map(({ host, port }) => `${host}:${port}`).join(',')}/${MASTER_NAME}`,
    stopReplica: async () => {
      process.kill(replica.pid, 'SIGSTOP');
      // Without this, commands would be buffered in the socket, and the replica would read them when it resumes.
      await ask(first, 'CLIENT', 'KILL', 'TYPE', 'replica');
      offsetAtStop = Number(await fieldOf(first, 'replication', 'master_repl_offset'));
    },
    behindBytes: async () => Number(await fieldOf(first, 'replication', 'master_repl_offset')) - offsetAtStop,
    firstPort: first.port,
    killMaster: () => master.kill(),
    promoted: async () => {
      process.kill(replica.pid, 'SIGCONT');
      await eventually(
        async () => {
          let agreeing = 0;
          for (const sentinel of sentinels) {
            const told = await ask(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME).catch(
              () => [],
            );
            if (String(told) === `${second.host},${second.port}`) agreeing += 1;
          }
          if (agreeing < QUORUM) throw new Error(`${agreeing} sentinels name the new master`);
        },
        { timeoutMs: 120_000, intervalMs: 50 },
      );
    },
    restartMaster: async () => {
      master = await start('master', places.master, durable, first.port);
    },
    roleOfFirst: () => fieldOf(first, 'replication', 'role'),
    close: () => releases.run(),
  };
}

/** Starts a server in a separate folder, where clean-up-after.mjs finds it. */
export async function startOwn({ folder, ...options }: ServerOptions): Promise<RedisProcess> {
  const own = join(folder, options.name);
  await mkdir(own, { recursive: true });
  const conf = (port: number) => [
    `pidfile ${join(own, 'redis.pid')}`,
    ...options.conf(port),
    ...(options.isSentinel ? [] : ['maxmemory-policy noeviction']),
  ];
  return await startServer({ ...options, folder: own, conf });
}
