import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startPostgres } from '@runhook/embedded';
import { eventually, prepareDatabase } from '@runhook/testing';
import {
  type RedisProcess,
  type ServerOptions,
  send,
  startServer,
} from '../../packages/queue/test/backends/redis-servers.ts';
import { CleanupStack } from './cleanup-stack.ts';
import { CHAOS_DATABASE, makeFolder, type Stores } from './servers.ts';

/** Time after which sentinels treat a Redis as down, which is the minimum wait of its clients. */
const DOWN_AFTER_MS = 2_000;
const SENTINELS = 3;
const QUORUM = 2;
const MASTER_NAME = 'main';

/** Location of a server; this machine's loopback when omitted. */
export type ServerLocation = Pick<ServerOptions, 'host' | 'within'>;

/** A Redis with a replica and three sentinels, and a PostgreSQL. */
export interface SentinelServers extends Stores {
  /** Stops the replica; the master continues without it. */
  stopReplica(): Promise<void>;
  /** Returns by how many bytes the replica is behind. */
  lagBytes(): Promise<number>;
  killMaster(): Promise<void>;
  /** Resumes the replica. Resolves when a quorum of the sentinels reports it as the master. */
  waitUntilPromoted(): Promise<void>;
  /** Restarts the first master on the same port, with its data. */
  restartMaster(): Promise<void>;
  /** Port of the first master. */
  firstPort: number;
  /** Returns the current role of the first master: `master` or `slave`. */
  readRoleOfFirst(): Promise<string>;
}

export interface SentinelLocations {
  master: ServerLocation;
  replica: ServerLocation;
  sentinels: readonly ServerLocation[];
}

const LOOPBACK: SentinelLocations = { master: {}, replica: {}, sentinels: Array(SENTINELS).fill({}) };

/** @param serverConfig additional lines of the configuration of Redis */
export async function startSentinelServers(serverConfig: readonly string[] = []): Promise<SentinelServers> {
  const cleanup = new CleanupStack();
  try {
    const folder = await makeFolder(cleanup);
    const databaseUrl = await startRecord(folder, cleanup);
    return await startSentinels({ folder, databaseUrl, cleanup, serverConfig, locations: LOOPBACK });
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

/** Starts a PostgreSQL with the tables. Resolves with its URL. */
export async function startRecord(folder: string, cleanup: CleanupStack): Promise<string> {
  const postgres = await startPostgres({ dataDir: join(folder, 'postgres'), database: CHAOS_DATABASE });
  cleanup.add(() => postgres.stop());
  await prepareDatabase(postgres.url);
  return postgres.url;
}

export async function startSentinels({
  folder,
  databaseUrl,
  cleanup,
  serverConfig,
  locations,
}: {
  folder: string;
  databaseUrl: string;
  cleanup: CleanupStack;
  serverConfig: readonly string[];
  locations: SentinelLocations;
}): Promise<SentinelServers> {
  const hostOf = ({ host = '127.0.0.1' }: ServerLocation) => host;
  const durableConfig = [
    'save ""',
    'appendonly yes',
    'appendfsync everysec',
    'protected-mode no',
    ...serverConfig,
  ];
  const start = (name: string, location: ServerLocation, conf: readonly string[], port?: number) =>
    startInOwnFolder({
      folder,
      name,
      ...location,
      conf: (ownFolder) => [`port ${ownFolder}`, ...conf],
      ...(port && { port }),
    });

  let master = await start('master', locations.master, durableConfig);
  cleanup.add(() => master.kill());
  const first = { host: hostOf(locations.master), port: master.port };
  const replica = await start('replica', locations.replica, [
    ...durableConfig,
    `replicaof ${first.host} ${first.port}`,
  ]);
  cleanup.add(() => replica.kill());
  const second = { host: hostOf(locations.replica), port: replica.port };
  const sentinels: { host: string; port: number }[] = [];
  for (const [index, location] of locations.sentinels.entries()) {
    const conf = [
      `sentinel monitor ${MASTER_NAME} ${first.host} ${first.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${MASTER_NAME} ${5 * DOWN_AFTER_MS}`,
      'protected-mode no',
    ];
    const sentinel = await startInOwnFolder({
      folder,
      name: `sentinel-${index}`,
      ...location,
      conf: (port) => [`port ${port}`, ...conf],
      isSentinel: true,
    });
    cleanup.add(() => sentinel.kill());
    sentinels.push({ host: hostOf(location), port: sentinel.port });
  }

  const sendCommand = async ({ host, port }: typeof first, ...command: string[]) =>
    await send(port, command, { host });
  await eventually(async () => {
    for (const sentinel of sentinels) {
      const counts = [
        await sendCommand(sentinel, 'SENTINEL', 'REPLICAS', MASTER_NAME),
        await sendCommand(sentinel, 'SENTINEL', 'SENTINELS', MASTER_NAME),
      ].map((list) => (list as unknown[]).length);
      if (counts[0] !== 1 || counts[1] !== SENTINELS - 1)
        throw new Error(`a sentinel reports ${counts} replicas and sentinels`);
    }
    if (!/state=online/.test(String(await sendCommand(first, 'INFO', 'replication'))))
      throw new Error('the master has no replica');
  });

  const readInfoField = async (server: typeof first, section: string, name: string) =>
    new RegExp(`^${name}:(\\S+)`, 'm').exec(String(await sendCommand(server, 'INFO', section)))?.[1] ?? '';
  let offsetAtStop = 0;
  return {
    folder,
    databaseUrl,
    queueUrl: `redis+sentinel://${sentinels.map(({ host, port }) => `${host}:${port}`).join(',')}/${MASTER_NAME}`,
    stopReplica: async () => {
      process.kill(replica.pid, 'SIGSTOP');
      // Without this, commands would be buffered in the socket, and the replica would read them when it resumes.
      await sendCommand(first, 'CLIENT', 'KILL', 'TYPE', 'replica');
      offsetAtStop = Number(await readInfoField(first, 'replication', 'master_repl_offset'));
    },
    lagBytes: async () =>
      Number(await readInfoField(first, 'replication', 'master_repl_offset')) - offsetAtStop,
    firstPort: first.port,
    killMaster: () => master.kill(),
    waitUntilPromoted: async () => {
      process.kill(replica.pid, 'SIGCONT');
      await eventually(
        async () => {
          let agreeingCount = 0;
          for (const sentinel of sentinels) {
            const address = await sendCommand(
              sentinel,
              'SENTINEL',
              'GET-MASTER-ADDR-BY-NAME',
              MASTER_NAME,
            ).catch(() => []);
            if (String(address) === `${second.host},${second.port}`) agreeingCount += 1;
          }
          if (agreeingCount < QUORUM) throw new Error(`${agreeingCount} sentinels name the new master`);
        },
        { timeoutMs: 120_000, intervalMs: 50 },
      );
    },
    restartMaster: async () => {
      master = await start('master', locations.master, durableConfig, first.port);
    },
    readRoleOfFirst: () => readInfoField(first, 'replication', 'role'),
    close: () => cleanup.run(),
  };
}

/** Starts a server in a separate folder, where cleanup-process.mjs finds it. */
export async function startInOwnFolder({ folder, ...options }: ServerOptions): Promise<RedisProcess> {
  const ownFolder = join(folder, options.name);
  await mkdir(ownFolder, { recursive: true });
  const conf = (port: number) => [
    `pidfile ${join(ownFolder, 'redis.pid')}`,
    ...options.conf(port),
    ...(options.isSentinel ? [] : ['maxmemory-policy noeviction']),
  ];
  return await startServer({ ...options, folder: ownFolder, conf });
}
