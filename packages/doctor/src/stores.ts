import {
  canDecryptNewest,
  defaultPartitionBytes,
  type EncryptionKey,
  findMissingDayPartitions,
  isDatabaseUnavailable,
  KeysUnknownError,
  openDatabase,
  type Pool,
  readLockCapacity,
  requireKeys,
  requireSchema,
  runStatement,
  SchemaBehindError,
} from '@runhook/database';
import { inspectRedis, queueUrlWithLogin } from '@runhook/queue/inspect';
import { clockFinding, type Finding, failed, ok, reasonOf, skipped, warning } from './finding.ts';
import { examinePooler } from './pooler.ts';
import { examinePostgresSettings, POSTGRES_SETTINGS } from './postgres-settings.ts';
import { examinePrivileges } from './privileges.ts';

export interface StoreOptions {
  databaseUrl: string | undefined;
  replicaUrl: string | undefined;
  queueUrl: string | undefined;
  encryptionKeys: readonly EncryptionKey[] | undefined;
  logRetentionDays: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  timeoutMs: number;
}

const POSTGRES_MAJOR_MIN = 15;
const REDIS_MAJOR_MIN = 7;

/** Checks that require a reachable database, in their order; those after `database clock` also require migrations. */
const DATABASE_CHECKS = [
  'pooler',
  'schema',
  'database clock',
  'partitions',
  'locks',
  'keys',
  'privileges',
  ...POSTGRES_SETTINGS,
];

export async function* examineDatabase(options: StoreOptions): AsyncGenerator<Finding> {
  const { databaseUrl, now, timeoutMs } = options;
  if (databaseUrl === undefined) {
    yield skipped('database', 'DATABASE_URL is not set', 'Set DATABASE_URL to check the database.');
    return;
  }
  const { pool, close } = openDatabase({ url: databaseUrl, connectionsMax: 1, connectTimeoutMs: timeoutMs });
  try {
    const beforeMs = now();
    const server = await readServer(pool).catch((error: unknown) => databaseFailure(error));
    if ('status' in server) {
      yield server;
      for (const check of DATABASE_CHECKS)
        yield skipped(check, 'not checked, because the database check failed');
      return;
    }
    const major = Number.parseInt(server.version, 10);
    yield major < POSTGRES_MAJOR_MIN
      ? failed(
          'database',
          `PostgreSQL ${server.version} is too old`,
          `Use PostgreSQL ${POSTGRES_MAJOR_MIN} or newer.`,
        )
      : ok('database', `PostgreSQL ${server.version} is reachable`);
    const pooler = await examinePooler(databaseUrl, timeoutMs);
    yield pooler;
    if (pooler.status === 'failed') {
      for (const check of DATABASE_CHECKS.slice(1))
        yield skipped(check, 'not checked, because the pooler check failed');
      return;
    }
    const schema = await examineSchema(pool);
    yield schema;
    yield clockFinding('database clock', Number(server.time_ms), beforeMs, now());
    if (schema.status === 'failed') {
      for (const check of DATABASE_CHECKS.slice(3))
        yield skipped(check, 'not checked, because the schema is outdated');
      return;
    }
    yield await examinePartitions(pool);
    yield await examineLocks(pool, options.logRetentionDays);
    yield await examineKeys(pool, options.encryptionKeys);
    yield await examinePrivileges(pool, options.logRetentionDays);
    yield* examinePostgresSettings(pool);
  } finally {
    await close();
  }
}

const SELECT_SERVER = `SELECT current_setting('server_version') AS version, extract(epoch FROM clock_timestamp()) * 1000 AS time_ms`;

async function readServer(pool: Pool): Promise<{ version: string; time_ms: string }> {
  const [row] = await runStatement<{ version: string; time_ms: string }>(pool, SELECT_SERVER, []);
  return row as { version: string; time_ms: string };
}

/** PostgreSQL's login errors by SQLSTATE. */
const LOGIN_FAILURES: Readonly<Record<string, [message: string, remedy: string]>> = {
  '28000': [
    'rejects the user of DATABASE_URL',
    'Allow the user in pg_hba.conf, or use another one in DATABASE_URL.',
  ],
  '28P01': ['rejects the user or the password of DATABASE_URL', 'Correct them in DATABASE_URL.'],
  '3D000': [
    'has no database with the name in DATABASE_URL',
    'Create it, or correct the name in DATABASE_URL.',
  ],
};

function databaseFailure(error: unknown): Finding {
  const code = reasonOf(error);
  const loginFailure = LOGIN_FAILURES[code];
  if (loginFailure !== undefined) return failed('database', loginFailure[0], loginFailure[1]);
  if (!isDatabaseUnavailable(error) && /^[0-9A-Z]{5}$/.test(code))
    return failed('database', `rejects queries (${code})`, 'See the log of PostgreSQL.');
  return failed(
    'database',
    `cannot be reached (${code})`,
    'Check that it is running, that host and port in DATABASE_URL are correct, and that no firewall blocks this machine.',
  );
}

async function examineSchema(pool: Pool): Promise<Finding> {
  try {
    await requireSchema(pool);
    return ok('schema', 'has all migrations of this release');
  } catch (error) {
    if (!(error instanceof SchemaBehindError))
      return failed('schema', reasonOf(error), 'See the log of PostgreSQL.');
    const remedy = 'Run the migration of this release (`migrate`) before its services: docs/deployment.md.';
    return failed('schema', `is older than this release: ${error.message}`, remedy);
  }
}

async function examinePartitions(pool: Pool): Promise<Finding> {
  const missing = await findMissingDayPartitions(pool);
  if (missing.length === 0) return await examineDefaultPartitions(pool);
  const names = missing.slice(0, 3).join(', ');
  const suffix = missing.length > 3 ? ` and ${missing.length - 3} more` : '';
  return failed(
    'partitions',
    `are missing: ${names}${suffix}`,
    'A dispatcher creates them within minutes. Check that one is running, that `migrate` has granted its role the functions for day partitions, and that no long query on the log blocks it.',
  );
}

const DEFAULT_BYTES_WARNING = 4 * 1024 * 1024;

async function examineDefaultPartitions(pool: Pool): Promise<Finding> {
  const bytes = Object.entries(await defaultPartitionBytes(pool));
  const largePartitions = bytes.filter(([, size]) => size > DEFAULT_BYTES_WARNING);
  if (largePartitions.length === 0) return ok('partitions', 'exist for the next week');
  const sizes = largePartitions.map(
    ([table, size]) => `${table}_default ${Math.round(size / 1024 / 1024)} MB`,
  );
  return warning(
    'partitions',
    `do not contain all rows: ${sizes.join(', ')}`,
    'A dispatcher converts a default partition above 16 MB: docs/runbook.md, RunhookDefaultPartition.',
  );
}

async function examineLocks(pool: Pool, retentionDays: number): Promise<Finding> {
  const { statementsMax, setting, settingNeeded } = await readLockCapacity(pool, retentionDays);
  if (setting >= settingNeeded) return ok('locks', `max_locks_per_transaction ${setting} is sufficient`);
  return warning(
    'locks',
    `max_locks_per_transaction ${setting} is sufficient for only ${statementsMax} concurrent statements over the complete log`,
    `Set it to at least ${settingNeeded} and restart PostgreSQL, or reduce LOG_RETENTION_DAYS.`,
  );
}

async function examineKeys(pool: Pool, keys: readonly EncryptionKey[] | undefined): Promise<Finding> {
  if (keys === undefined)
    return skipped('keys', 'ENCRYPTION_KEYS is not set', 'Set it to the value of the services to check it.');
  const remedy =
    'Add every key that encrypts a secret to ENCRYPTION_KEYS: docs/administration.md, Rotating ENCRYPTION_KEYS.';
  try {
    const { unknown } = await requireKeys(pool, keys);
    if (unknown.length > 0)
      return failed('keys', `some secrets are encrypted with missing keys: ${unknown.join(', ')}`, remedy);
  } catch (error) {
    if (error instanceof KeysUnknownError) return failed('keys', error.message, remedy);
    return failed('keys', reasonOf(error), 'See the log of PostgreSQL.');
  }
  if (await canDecryptNewest(pool, keys))
    return ok('keys', `decrypt the stored secrets (${keys.map(({ name }) => name).join(', ')})`);
  return failed(
    'keys',
    'have a matching name but a different key: the newest secret does not decrypt',
    remedy,
  );
}

const SELECT_WRITTEN_LSN = `SELECT pg_current_wal_lsn()::text AS lsn`;
const SELECT_REPLAY_STATE = `
  SELECT pg_is_in_recovery() AS is_replica, greatest(0, $1::pg_lsn - pg_last_wal_replay_lsn())::text AS lag_bytes`;
/** A busy primary writes this much within seconds; a replica that is further behind does not keep up. */
const LAG_BYTES_MAX = 256 * 1024 * 1024;

/** Compares the replica with the primary. Yields nothing unless both have a URL. */
export async function* examineReplica(options: StoreOptions): AsyncGenerator<Finding> {
  const { databaseUrl, replicaUrl, timeoutMs } = options;
  if (replicaUrl === undefined || databaseUrl === undefined) return;
  const open = (url: string) => openDatabase({ url, connectionsMax: 1, connectTimeoutMs: timeoutMs });
  const [primary, replica] = [open(databaseUrl), open(replicaUrl)];
  try {
    const pooler = await examinePooler(replicaUrl, timeoutMs);
    if (pooler.status === 'failed') {
      yield { ...pooler, check: 'replica' };
      return;
    }
    const [writtenRow] = await runStatement<{ lsn: string }>(primary.pool, SELECT_WRITTEN_LSN, []);
    const [row] = await runStatement<{ is_replica: boolean; lag_bytes: string | null }>(
      replica.pool,
      SELECT_REPLAY_STATE,
      [writtenRow?.lsn],
    );
    const lagBytes = Number(row?.lag_bytes ?? 0);
    if (row?.is_replica !== true)
      yield failed(
        'replica',
        'is not a replica',
        'Set DATABASE_REPLICA_URL to a streaming replica of DATABASE_URL, or remove it.',
      );
    else if (lagBytes > LAG_BYTES_MAX)
      yield warning(
        'replica',
        `is ${Math.round(lagBytes / 1024 / 1024)} MB of the write-ahead log behind`,
        'Lists are read from the primary until it catches up; pg_stat_replication shows its progress.',
      );
    else yield ok('replica', `follows the primary, ${lagBytes} bytes of the write-ahead log behind`);
  } catch (error) {
    const { message, ...finding } = databaseFailure(error);
    yield {
      ...finding,
      check: 'replica',
      message: message.replaceAll('DATABASE_URL', 'DATABASE_REPLICA_URL'),
      remedy:
        'Check that PostgreSQL is reachable at DATABASE_REPLICA_URL; until then lists are read from the primary.',
    };
  } finally {
    await Promise.all([primary.close(), replica.close()]);
  }
}

export async function* examineQueue({
  databaseUrl,
  queueUrl,
  now,
  timeoutMs,
}: StoreOptions): AsyncGenerator<Finding> {
  if (queueUrl === undefined) {
    yield skipped('queue', 'QUEUE_URL is not set', 'Set QUEUE_URL to check the queue.');
    return;
  }
  if (/^postgres/.test(queueUrl)) {
    const url = databaseUrl === undefined ? queueUrl : queueUrlWithLogin(queueUrl, databaseUrl);
    yield await examineQueueInPostgres(url, timeoutMs);
    return;
  }
  const beforeMs = now();
  const server = await inspectRedis(queueUrl, timeoutMs).catch((error: unknown) => queueFailure(error));
  if ('status' in server) {
    yield server;
    for (const check of ['eviction', 'queue clock'])
      yield skipped(check, 'not checked, because the queue check failed');
    return;
  }
  const { version, maxmemoryPolicy, usedShare, timeMs } = server;
  yield Number.parseInt(version, 10) < REDIS_MAJOR_MIN
    ? warning(
        'queue',
        `Redis ${version} is older than the tested versions`,
        `Use Redis ${REDIS_MAJOR_MIN} or newer, or Valkey 8.`,
      )
    : ok('queue', `Redis ${version} is reachable`);
  yield maxmemoryPolicy === 'noeviction'
    ? memoryFinding(usedShare)
    : failed(
        'eviction',
        `maxmemory-policy is ${maxmemoryPolicy}: Redis deletes jobs when it is full`,
        'Run CONFIG SET maxmemory-policy noeviction, and set it in the configuration file of Redis.',
      );
  yield clockFinding('queue clock', timeMs, beforeMs, now());
}

const FULL_SHARE = 0.8;

function memoryFinding(usedShare: number | null): Finding {
  if (usedShare === null || usedShare < FULL_SHARE) return ok('eviction', 'maxmemory-policy is noeviction');
  return warning(
    'eviction',
    `Redis uses ${Math.round(100 * usedShare)} % of its maxmemory`,
    'Increase maxmemory, or move other data to another Redis: above 85 % the queue rejects new events of publishers.',
  );
}

function queueFailure(error: unknown): Finding {
  const { message = '' } = error as Error;
  if (/WRONGPASS|NOAUTH|NOPERM/.test(message))
    return failed('queue', 'rejects the user or the password of QUEUE_URL', 'Correct them in QUEUE_URL.');
  return failed(
    'queue',
    `cannot be reached (${reasonOf(error)})`,
    'Check that it is running, that host and port in QUEUE_URL are correct, and that no firewall blocks this machine.',
  );
}

async function examineQueueInPostgres(url: string, timeoutMs: number): Promise<Finding> {
  const { pool, close } = openDatabase({ url, connectionsMax: 1, connectTimeoutMs: timeoutMs });
  try {
    const statement = `SELECT to_regclass('bullmq.job') IS NOT NULL AS "isPresent"`;
    const [row] = await runStatement<{ isPresent: boolean }>(pool, statement, []);
    if (row?.isPresent === true) return ok('queue', 'is in PostgreSQL, with its schema');
    return failed('queue', 'is in PostgreSQL, without its schema', 'Run `migrate` with QUEUE_URL set.');
  } catch (error) {
    return {
      ...databaseFailure(error),
      check: 'queue',
      remedy: 'Check that PostgreSQL is reachable at QUEUE_URL.',
    };
  } finally {
    await close();
  }
}
