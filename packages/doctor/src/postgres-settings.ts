import { countQuarantined, listQuarantined, type Pool, runStatement } from '@runhook/database';
import { type Finding, failed, ok, reasonOf, skipped, warning } from './finding.ts';

/** The checks of {@link examinePostgresSettings}, in order. */
export const POSTGRES_SETTINGS = ['writes', 'jit', 'statistics', 'commit', 'quarantine'];

/**
 * Checks settings that slow down or stop writes on any PostgreSQL, and the quarantined items.
 * @param nowMs monotonic clock in milliseconds
 */
export async function* examinePostgresSettings(
  pool: Pool,
  nowMs = () => performance.now(),
): AsyncGenerator<Finding> {
  const [row] = await runStatement<Settings>(pool, SETTINGS, []);
  const settings = row as Settings;
  yield writesFinding(settings);
  yield jitFinding(settings);
  yield await examineStatistics(pool, settings);
  yield isReadOnly(settings)
    ? skipped('commit', 'not measured, because writes are not possible')
    : await examineCommit(pool, nowMs);
  yield await examineQuarantine(pool);
}

interface Settings {
  [column: string]: unknown;
  database: string;
  role: string;
  is_standby: boolean;
  is_read_only: boolean;
  may_write: boolean;
  has_jit: boolean;
  has_autovacuum: boolean;
}

// `reset_val` is the initial value of sessions of this role in this database, regardless of settings of the pools.
const SETTINGS = `
  SELECT quote_ident(current_database()) AS database, quote_ident(current_user) AS role,
    pg_is_in_recovery() AS is_standby,
    (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only') AS is_read_only,
    (SELECT bool_and(has_table_privilege(t, 'INSERT')) FROM unnest(ARRAY['events', 'attempts', 'runs']) AS t)
      AS may_write,
    (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'jit') AS has_jit,
    (SELECT bool_and(setting = 'on') FROM pg_settings WHERE name IN ('autovacuum', 'track_counts')) AS has_autovacuum`;

const isReadOnly = ({ is_standby, is_read_only, may_write }: Settings) =>
  is_standby || is_read_only || !may_write;

function writesFinding(settings: Settings): Finding {
  const { database, role, is_standby, is_read_only } = settings;
  if (!isReadOnly(settings)) return ok('writes', 'are possible');
  if (is_standby)
    return failed(
      'writes',
      'are not possible: the server is a standby',
      'Use the primary in DATABASE_URL, or promote the standby: SELECT pg_promote();',
    );
  if (is_read_only)
    return failed(
      'writes',
      'are not possible: default_transaction_read_only is on',
      `ALTER DATABASE ${database} RESET default_transaction_read_only; ALTER ROLE ${role} RESET default_transaction_read_only;`,
    );
  return failed(
    'writes',
    'are not possible: the user of DATABASE_URL lacks permissions on events, attempts or runs',
    'Run `migrate` with the URLs of the services, which grants their roles what they need: docs/upgrading.md, Database roles.',
  );
}

function jitFinding({ database, role, has_jit }: Settings): Finding {
  if (!has_jit) return ok('jit', 'is off');
  return warning(
    'jit',
    'is on: compiling a short statement may take longer than running it',
    `ALTER ROLE ${role} IN DATABASE ${database} SET jit = off;`,
  );
}

// A partition without statistics has `reltuples` -1; for smaller ones the planner's estimates are harmless.
const SIZE_MIN_BYTES = 8 * 1024 * 1024;
const TABLES_WITHOUT_STATISTICS = `
  SELECT c.oid::regclass::text AS name
  FROM unnest(ARRAY['events', 'deliveries', 'attempts']) AS log CROSS JOIN LATERAL pg_partition_tree(log::regclass) p
  JOIN pg_class c ON c.oid = p.relid
  WHERE p.isleaf AND c.relkind = 'r' AND c.reltuples < 0 AND pg_relation_size(c.oid) >= $1
  ORDER BY 1`;

async function examineStatistics(pool: Pool, { has_autovacuum }: Settings): Promise<Finding> {
  if (!has_autovacuum)
    return warning(
      'statistics',
      'autovacuum or track_counts is off: day tables get no statistics and are not vacuumed',
      'ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf();',
    );
  const missing = await runStatement<{ name: string }>(pool, TABLES_WITHOUT_STATISTICS, [SIZE_MIN_BYTES]);
  if (missing.length === 0) return ok('statistics', 'exist for all day tables');
  const names = missing.map(({ name }) => name);
  return warning(
    'statistics',
    `are missing for ${names.length} day tables: the planner may choose the wrong index`,
    `ANALYZE ${names.slice(0, 5).join(', ')}; autovacuum does this within autovacuum_naptime unless it is overloaded.`,
  );
}

const COMMIT_SAMPLES = 5;
const COMMIT_WARNING_MS = 20;
/** Writes to the write-ahead log and flushes it as every commit does, without changing data. */
const COMMIT = `SELECT pg_logical_emit_message(true, 'runhook doctor', '')`;

async function examineCommit(pool: Pool, nowMs: () => number): Promise<Finding> {
  try {
    const roundTripMs = await medianMs(pool, 'SELECT 1', nowMs);
    const commitMs = Math.max(0, (await medianMs(pool, COMMIT, nowMs)) - roundTripMs);
    const flushText = `${commitMs.toFixed(1)} ms to flush the write-ahead log`;
    if (commitMs < COMMIT_WARNING_MS) return ok('commit', `takes ${flushText}`);
    return warning(
      'commit',
      `takes ${flushText}: each response of the API waits for a flush`,
      'Move pg_wal to faster storage (pg_test_fsync measures it). Until then: ALTER SYSTEM SET commit_delay = 2000; SELECT pg_reload_conf();',
    );
  } catch (error) {
    return skipped('commit', `cannot be measured (${reasonOf(error)})`);
  }
}

async function medianMs(pool: Pool, statement: string, nowMs: () => number): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < COMMIT_SAMPLES; count += 1) {
    const startMs = nowMs();
    await runStatement(pool, statement, []);
    times.push(nowMs() - startMs);
  }
  return times.sort((one, other) => one - other)[Math.floor(COMMIT_SAMPLES / 2)] ?? 0;
}

async function examineQuarantine(pool: Pool): Promise<Finding> {
  const [newest] = await listQuarantined(pool, { limit: 1 });
  if (newest === undefined) return ok('quarantine', 'no items');
  const count = await countQuarantined(pool);
  return warning(
    'quarantine',
    `${count} items are quarantined; the newest (${newest.kind}) belongs to account ${newest.accountId}: ${[...newest.reason].slice(0, 120).join('')}`,
    'List them with `npm run admin -- queue failed`, then use `queue retry` or `queue remove`.',
  );
}
