import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend, migrateQueue } from '@runhook/queue';
import { createTestDatabase } from '@runhook/testing';
import { createPostgresBackend, PostgresQueueBackend, RedisQueueBackend } from 'bullmq';
import pg from 'pg';
import { POSTGRES_SCHEMA } from '../../src/patches/bullmq/postgres-backend.ts';
import { untestedVersion } from '../../src/patches/bullmq/version.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('the installed BullMQ is the version that patches/bullmq was written for, and any other version is reported', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const queue = createQueueBackend(database.url).createQueue('version');
  closers.push(() => queue.close());
  expect(untestedVersion(queue.metaValues.version)).toBeNull();
  expect(untestedVersion('bullmq:7.0.0')).toContain('but bullmq:7.0.0 is installed');
});

const HINT = 'This version of BullMQ differs from what packages/queue/src/patches/bullmq replaces: ';

test('BullMQ makes its connection to PostgreSQL ready once, and caches the failure', async () => {
  const connection = {
    connectionString: 'postgres://127.0.0.1:1/none',
    schema: POSTGRES_SCHEMA,
    migrate: true,
  };
  const backend = createPostgresBackend('internals', { connection }, { blocking: false });
  closers.push(() => backend.close());
  let tries = 0;
  const { pool } = backend.connection;
  pool.connect = async () => {
    tries += 1;
    throw new Error('the server is away');
  };
  for (let call = 0; call < 3; call += 1) await backend.connection.waitUntilReady().catch(() => undefined);
  expect(`${HINT}${tries}`).toBe(`${HINT}1`);
});

test('BullMQ has the private methods that are replaced', () => {
  expect(RedisQueueBackend.prototype).toHaveProperty('execCommand');
  expect(PostgresQueueBackend.prototype).toHaveProperty('run');
});

/** Number of executions after which PL/pgSQL may cache a generic plan; it needs five. */
const EXECUTIONS = 7;
const TAKE = `SELECT FROM ${POSTGRES_SCHEMA}.move_to_active('plans', 'token', 30000, 0, 'worker', NULL, NULL)`;
const ADD_WAITING = `
  INSERT INTO ${POSTGRES_SCHEMA}.job (queue, id, seq, name, state, added_at_ms)
  SELECT 'plans', n::text, n, 'job', 'waiting', 0 FROM generate_series(1, 1000) n`;

test('a job is found by an index although its table was analysed while empty, which requires enable_seqscan=off', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  await migrateQueue(database.url);
  const queue = createQueueBackend(database.url).createQueue('plans');
  closers.push(() => queue.close());
  await queue.waitUntilReady();
  const { connection } = queue.getBackend() as unknown as { connection: { pool: pg.Pool } };
  const plain = new pg.Pool({ connectionString: database.url });
  closers.push(() => plain.end());
  const [ours, other] = [await connection.pool.connect(), await plain.connect()];
  closers.push(async () => void [ours, other].map((client) => client.release()));
  // Autovacuum would analyse the table again once it has rows.
  await plain.query(`ALTER TABLE ${POSTGRES_SCHEMA}.job SET (autovacuum_enabled = off)`);
  await plain.query(`VACUUM (ANALYZE) ${POSTGRES_SCHEMA}.job`);
  for (const client of [ours, other])
    for (let count = 0; count < EXECUTIONS; count += 1) await client.query(TAKE);
  await plain.query(ADD_WAITING);
  expect(await scansOf(ours)).toBe(0);
  // Once this is 0, the setting is no longer needed (ADR 27).
  expect(await scansOf(other)).toBeGreaterThan(0);
});

/** Returns the number of sequential scans of the table of jobs while one job is taken. */
async function scansOf(client: pg.PoolClient): Promise<number> {
  await client.query('BEGIN');
  await client.query(TAKE);
  const { rows } = await client.query<{ scans: number }>(
    `SELECT seq_scan::int AS scans FROM pg_stat_xact_user_tables WHERE relid = '${POSTGRES_SCHEMA}.job'::regclass`,
  );
  await client.query('ROLLBACK');
  return rows[0]?.scans ?? 0;
}
