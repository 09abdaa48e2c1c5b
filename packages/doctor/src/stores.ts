import {
  decryptsNewest,
  defaultPartitionBytes,
  type EncryptionKey,
  isDatabaseUnavailable,
  KeysUnknownError,
  lockRoom,
  missingDayPartitions,
  openDatabase,
  type Pool,
  requireKeys,
  requireSchema,
  runStatement,
  SchemaBehindError,
} from '@runhook/database';
import { inspectRedis } from '@runhook/queue/inspect';
import { clockFinding, type Finding, failed, ok, reasonOf, skipped, warning } from './finding.ts';
import { examinePooler } from './pooler.ts';
import { examinePostgresSettings, POSTGRES_SETTINGS } from './postgres-settings.ts';

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

/** Checks that require a reachable, migrated database. */
const OF_DATABASE = [
  'pooler',
  'schema',
  'database clock',
  'partitions',
  'locks',
  'keys',
  ...POSTGRES_SETTINGS,
];

export async function* examineDatabase(options: StoreOptions): AsyncGenerator<Finding> {
  const { databaseUrl, now, timeoutMs } = options;
  if (databaseUrl === undefined) {
    yield skipped('database', 'DATABASE_URL is not set', 'Set DATABASE_URL to have it looked at.');
    return;
  }
  const { pool, close } = openDatabase({ url: databaseUrl, connectionsMax: 1, connectTimeoutMs: timeoutMs });
  try {
    const beforeMs = now();
    const server = await askServer(pool).catch((error: unknown) => databaseFailure(error));
    if ('verdict' in server) {
      yield server;
      for (const check of OF_DATABASE) yield skipped(check, 'the database cannot be asked');
      return;
    }
    const major = Number.parseInt(server.version, 10);
    yield major < POSTGRES_MAJOR_MIN
      ? failed(
          'database',
          `PostgreSQL ${server.version} is too old`,
          `Use PostgreSQL ${POSTGRES_MAJOR_MIN} or newer.`,
        )
      : ok('database', `PostgreSQL ${server.version} answers`);
    const pooler = await examinePooler(databaseUrl, timeoutMs);
    yield pooler;
    if (pooler.verdict === 'failed') {
      for (const check of OF_DATABASE.slice(1)) yield skipped(check, 'the pooler is in the way');
      return;
    }
    const schema = await examineSchema(pool);
    yield schema;
    yield clockFinding('database clock', Number(server.time_ms), beforeMs, now());
    if (schema.verdict === 'failed') {
      for (const check of OF_DATABASE.slice(3)) yield skipped(check, 'the schema is behind');
      return;
    }
    yield await examinePartitions(pool);
    yield await examineLocks(pool, options.logRetentionDays);
    yield await examineKeys(pool, options.encryptionKeys);
    yield* examinePostgresSettings(pool);
  } finally {
    await close();
  }
}

const SERVER = `SELECT current_setting('server_version') AS version, extract(epoch FROM clock_timestamp()) * 1000 AS time_ms`;

async function askServer(pool: Pool): Promise<{ version: string; time_ms: string }> {
  const [row] = await runStatement<{ version: string; time_ms: string }>(pool, SERVER, []);
  return row as { version: string; time_ms: string };
}

/** PostgreSQL's login errors by SQLSTATE. */
const LOGIN: Readonly<Record<string, [says: string, todo: string]>> = {
  '28000': [
    'refuses the user of DATABASE_URL',
    'Allow that user (pg_hba.conf), or name another in DATABASE_URL.',
  ],
  '28P01': ['refuses the user or the password of DATABASE_URL', 'Put the right password into DATABASE_URL.'],
  '3D000': [
    'has no database of the name in DATABASE_URL',
    'Create it, or name the right one in DATABASE_URL.',
  ],
};

function databaseFailure(error: unknown): Finding {
  const code = reasonOf(error);
  const login = LOGIN[code];
  if (login !== undefined) return failed('database', login[0], login[1]);
  if (!isDatabaseUnavailable(error) && /^[0-9A-Z]{5}$/.test(code))
    return failed('database', `refuses to be asked (${code})`, 'See the log of PostgreSQL.');
  return failed(
    'database',
    `cannot be reached (${code})`,
    'Is it running, is the host and port in DATABASE_URL right, and may this machine reach it?',
  );
}

async function examineSchema(pool: Pool): Promise<Finding> {
  try {
    await requireSchema(pool);
    return ok('schema', 'has every migration of this release');
  } catch (error) {
    if (!(error instanceof SchemaBehindError))
      return failed('schema', reasonOf(error), 'See the log of PostgreSQL.');
    const todo = 'Run the migration of this release (`migrate`) before its services: docs/deployment.md.';
    return failed('schema', `is behind this release: ${error.message}`, todo);
  }
}

async function examinePartitions(pool: Pool): Promise<Finding> {
  const missing = await missingDayPartitions(pool);
  if (missing.length === 0) return await examineDefaultPartitions(pool);
  const names = missing.slice(0, 3).join(', ');
  const more = missing.length > 3 ? ` and ${missing.length - 3} more` : '';
  return failed(
    'partitions',
    `are missing: ${names}${more}`,
    'A dispatcher makes them within minutes: is one running, and may its user create tables? Long readers of the log hold it up.',
  );
}

const DEFAULT_BYTES_WARNING = 4 * 1024 * 1024;

async function examineDefaultPartitions(pool: Pool): Promise<Finding> {
  const bytes = Object.entries(await defaultPartitionBytes(pool));
  const grown = bytes.filter(([, size]) => size > DEFAULT_BYTES_WARNING);
  if (grown.length === 0) return ok('partitions', 'are there up to a week ahead');
  const sizes = grown.map(([table, size]) => `${table}_default ${Math.round(size / 1024 / 1024)} MB`);
  return warning(
    'partitions',
    `do not contain every row: ${sizes.join(', ')}`,
    'A dispatcher converts a default partition above 16 MB: docs/runbook.md, RunhookDefaultPartition.',
  );
}

async function examineLocks(pool: Pool, retentionDays: number): Promise<Finding> {
  const { atOnce, setting, settingNeeded } = await lockRoom(pool, retentionDays);
  if (setting >= settingNeeded) return ok('locks', `max_locks_per_transaction ${setting} is enough`);
  return warning(
    'locks',
    `max_locks_per_transaction ${setting} has room for ${atOnce} statements over the whole log at once`,
    `Set it to ${settingNeeded} or more and restart PostgreSQL, or LOG_RETENTION_DAYS lower.`,
  );
}

async function examineKeys(pool: Pool, keys: readonly EncryptionKey[] | undefined): Promise<Finding> {
  if (keys === undefined)
    return skipped(
      'keys',
      'ENCRYPTION_KEYS is not set',
      'Set it as the services have it to have it looked at.',
    );
  const todo =
    'Give ENCRYPTION_KEYS every key that secrets are under: docs/administration.md, Rotating ENCRYPTION_KEYS.';
  try {
    const { unknown } = await requireKeys(pool, keys);
    if (unknown.length > 0)
      return failed('keys', `some secrets are under keys that are not given: ${unknown.join(', ')}`, todo);
  } catch (error) {
    if (error instanceof KeysUnknownError) return failed('keys', error.message, todo);
    return failed('keys', reasonOf(error), 'See the log of PostgreSQL.');
  }
  if (await decryptsNewest(pool, keys))
    return ok('keys', `open the secrets that are stored (${keys.map(({ name }) => name).join(', ')})`);
  return failed(
    'keys',
    'have the right name, and another key under it: the newest secret does not decrypt',
    todo,
  );
}

const WRITTEN = `SELECT pg_current_wal_lsn()::text AS place`;
const REPLAYED = `
  SELECT pg_is_in_recovery() AS is_replica, greatest(0, $1::pg_lsn - pg_last_wal_replay_lsn())::text AS bytes_behind`;
/** A busy primary writes this much within seconds; a replica that is further behind does not keep up. */
const BYTES_BEHIND_MAX = 256 * 1024 * 1024;

/** Yields nothing if no replica is configured. */
export async function* examineReplica(options: StoreOptions): AsyncGenerator<Finding> {
  const { databaseUrl, replicaUrl, timeoutMs } = options;
  if (replicaUrl === undefined || databaseUrl === undefined) return;
  const open = (url: string) => openDatabase({ url, connectionsMax: 1, connectTimeoutMs: timeoutMs });
  const [primary, replica] = [open(databaseUrl), open(replicaUrl)];
  try {
    const pooler = await examinePooler(replicaUrl, timeoutMs);
    if (pooler.verdict === 'failed') {
      yield { ...pooler, check: 'replica' };
      return;
    }
    const [written] = await runStatement<{ place: string }>(primary.pool, WRITTEN, []);
    const [row] = await runStatement<{ is_replica: boolean; bytes_behind: string | null }>(
      replica.pool,
      REPLAYED,
      [written?.place],
    );
    const behind = Number(row?.bytes_behind ?? 0);
    if (row?.is_replica !== true)
      yield failed('replica', 'is no replica', 'Name a streaming replica of DATABASE_URL, or none.');
    else if (behind > BYTES_BEHIND_MAX)
      yield warning(
        'replica',
        `is ${Math.round(behind / 1024 / 1024)} MB of the log behind`,
        'Lists are read from the primary meanwhile. pg_stat_replication says whether it catches up.',
      );
    else yield ok('replica', `follows the database, ${behind} bytes of its log behind`);
  } catch (error) {
    const { says, ...finding } = databaseFailure(error);
    yield {
      ...finding,
      check: 'replica',
      says: says.replaceAll('DATABASE_URL', 'DATABASE_REPLICA_URL'),
      todo: 'See that PostgreSQL answers at DATABASE_REPLICA_URL; lists are read from the primary meanwhile.',
    };
  } finally {
    await Promise.all([primary.close(), replica.close()]);
  }
}

export async function* examineQueue({ queueUrl, now, timeoutMs }: StoreOptions): AsyncGenerator<Finding> {
  if (queueUrl === undefined) {
    yield skipped('queue', 'QUEUE_URL is not set', 'Set QUEUE_URL to have it looked at.');
    return;
  }
  if (/^postgres/.test(queueUrl)) {
    yield await examineQueueInPostgres(queueUrl, timeoutMs);
    return;
  }
  const beforeMs = now();
  const server = await inspectRedis(queueUrl, timeoutMs).catch((error: unknown) => queueFailure(error));
  if ('verdict' in server) {
    yield server;
    for (const check of ['eviction', 'queue clock']) yield skipped(check, 'the queue cannot be asked');
    return;
  }
  const { version, maxmemoryPolicy, usedShare, timeMs } = server;
  yield Number.parseInt(version, 10) < REDIS_MAJOR_MIN
    ? warning(
        'queue',
        `Redis ${version} is older than what is tested`,
        `Use Redis ${REDIS_MAJOR_MIN} or newer, or Valkey 8.`,
      )
    : ok('queue', `Redis ${version} answers`);
  yield maxmemoryPolicy === 'noeviction'
    ? memoryFinding(usedShare)
    : failed(
        'eviction',
        `maxmemory-policy is ${maxmemoryPolicy}: when Redis is full it drops jobs`,
        'CONFIG SET maxmemory-policy noeviction, and the same in its configuration.',
      );
  yield clockFinding('queue clock', timeMs, beforeMs, now());
}

const FULL_SHARE = 0.8;

function memoryFinding(usedShare: number | null): Finding {
  if (usedShare === null || usedShare < FULL_SHARE) return ok('eviction', 'maxmemory-policy is noeviction');
  return warning(
    'eviction',
    `Redis uses ${Math.round(100 * usedShare)} % of its maxmemory`,
    'Give it more memory, or take what is not Runhook’s elsewhere: from 85 % on publishers are held back.',
  );
}

function queueFailure(error: unknown): Finding {
  const { message = '' } = error as Error;
  if (/WRONGPASS|NOAUTH|NOPERM/.test(message))
    return failed(
      'queue',
      'refuses the user or the password of QUEUE_URL',
      'Put the right ones into QUEUE_URL.',
    );
  return failed(
    'queue',
    `cannot be reached (${reasonOf(error)})`,
    'Is it running, are host and port in QUEUE_URL right, and may this machine reach it?',
  );
}

async function examineQueueInPostgres(url: string, timeoutMs: number): Promise<Finding> {
  const { pool, close } = openDatabase({ url, connectionsMax: 1, connectTimeoutMs: timeoutMs });
  try {
    const statement = `SELECT to_regclass('bullmq.job') IS NOT NULL AS there`;
    const [row] = await runStatement<{ there: boolean }>(pool, statement, []);
    if (row?.there === true) return ok('queue', 'is in PostgreSQL, and its schema is there');
    return failed('queue', 'is in PostgreSQL, without its schema', 'Run `migrate` with QUEUE_URL set.');
  } catch (error) {
    return { ...databaseFailure(error), check: 'queue', todo: 'See that PostgreSQL answers at QUEUE_URL.' };
  } finally {
    await close();
  }
}
