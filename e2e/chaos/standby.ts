import { spawnSync } from 'node:child_process';
import { chown, mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { startPostgres, startRedis } from '@runhook/embedded';
import { eventually, prepareDatabase, startTcpProxy, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { CleanupStack } from './cleanup-stack.ts';
import { type BackendName, CHAOS_DATABASE, makeFolder, type Stores } from './servers.ts';
import type { World } from './world.ts';

/** A PostgreSQL with a streaming replica, behind a proxy that connects to the current primary. */
export interface StandbyServers extends Stores {
  /** Stops replication. With synchronous replication, no commit gets a response afterwards. */
  stopReplication(): Promise<void>;
  killPrimary(): Promise<void>;
  /** Promotes the replica, notes the arrivals that its log lacks, and directs all connections to it. */
  promote(world: Pick<World<StandbyServers>, 'noteInFlight' | 'recordReplacedAtMs'>): Promise<void>;
}

/** @param isSynchronous whether a commit gets its response once the replica has stored it */
export async function startStandbyServers(
  backend: BackendName,
  { isSynchronous }: { isSynchronous: boolean },
): Promise<StandbyServers> {
  const cleanup = new CleanupStack();
  try {
    const folder = await makeFolder(cleanup);
    const dataDir = join(folder, 'postgres');
    const database = CHAOS_DATABASE;
    const fresh = await startPostgres({ dataDir, database });
    await prepareDatabase(fresh.url).finally(() => fresh.stop());
    await copyDataFolder(dataDir, join(folder, 'standby'));

    const settings = { wal_keep_size: '256MB' };
    const primary = await startPostgres({ dataDir, database, settings, port: fresh.port });
    cleanup.add(() => primary.stop());
    const replication = await startTcpProxy(primary.url);
    cleanup.add(() => replication.close());
    const { hostname, port, username, password } = new URL(replication.url);
    const standby = await startPostgres({
      dataDir: join(folder, 'standby'),
      database,
      settings: {
        primary_conninfo: `host=${hostname} port=${port} user=${username} password=${password}`,
        // The replica reports its position every second, and detects a silent primary within seconds.
        wal_receiver_status_interval: '1',
        wal_receiver_timeout: '5s',
      },
    });
    cleanup.add(() => standby.stop());
    if (isSynchronous) {
      await query(primary.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
      await query(primary.url, 'SELECT pg_reload_conf()');
    }
    const expectedState = isSynchronous ? 'sync' : 'async';
    await eventually(async () => {
      const rows = await query(primary.url, 'SELECT state, sync_state FROM pg_stat_replication');
      const [{ state, sync_state } = {}] = rows;
      if (state !== 'streaming' || sync_state !== expectedState)
        throw new Error(`the replica is ${JSON.stringify(rows)}`);
    });

    const proxy = await startTcpProxy(primary.url);
    cleanup.add(() => proxy.close());
    const redis =
      backend === 'Redis' ? await startRedis({ dataDir: join(folder, 'redis'), appendOnly: true }) : null;
    cleanup.add(async () => await redis?.stop());
    return {
      folder,
      databaseUrl: proxy.url,
      queueUrl: redis?.url ?? proxy.url,
      stopReplication: async () => replication.stall(),
      killPrimary: () => primary.kill(),
      async promote(world) {
        await query(standby.url, 'SELECT pg_promote(true, 60)');
        const promoted = openPrismaDatabase({
          url: standby.url,
          connectTimeoutMs: WAIT_TIMEOUT_MS,
          onConnectionError: () => undefined,
        });
        await world.noteInFlight(promoted).finally(() => promoted.close());
        world.recordReplacedAtMs = Date.now();
        proxy.redirectTo(standby.url);
      },
      close: () => cleanup.run(),
    };
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

/** Copies a stopped server, because npm's binaries lack `pg_basebackup`. */
async function copyDataFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o711 });
  for (const name of ['data', 'password']) {
    // Preserves owner and mode of each file.
    const { status, stderr } = spawnSync('cp', ['-RpP', join(from, name), to], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`the database was not copied: ${stderr}`);
  }
  const signal = join(to, 'standby.signal');
  await writeFile(signal, '');
  const { uid, gid } = await stat(join(to, 'data'));
  await chown(signal, uid, gid);
  await rename(signal, join(to, 'data', 'standby.signal'));
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const database = openDatabase({ url });
  return await database.pool
    .query(sql)
    .then(({ rows }) => rows)
    .finally(() => database.close());
}
