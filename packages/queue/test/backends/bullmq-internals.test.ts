import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend, migrateQueue } from '@runhook/queue';
import { createTestDatabase } from '@runhook/testing';
import { createPostgresBackend } from 'bullmq';
import pg from 'pg';
import { POSTGRES_SCHEMA } from '../../src/backends/postgres.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const HINT = `
This version of BullMQ makes a PostgreSQL connection ready in another way than createRetryingBackend (backends/postgres.ts)
counts on: backend.connection.waitUntilReady() calls backend.connection.bootstrap() once and remembers what came of it.
Either BullMQ tries again by itself now, and createRetryingBackend can go, or it needs another way in.`;

test('BullMQ makes its connection to PostgreSQL ready by `connection.bootstrap`, and remembers a failure', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const backend = createPostgresBackend(
    'internals',
    { connection: { connectionString: database.url, schema: POSTGRES_SCHEMA, migrate: true } },
    { blocking: false },
  );
  closers.push(() => backend.close());
  const { connection } = backend as unknown as { connection?: { [name: string]: unknown } };
  if (typeof connection?.bootstrap !== 'function' || typeof connection.waitUntilReady !== 'function') {
    throw new Error(HINT);
  }
  let tries = 0;
  connection.bootstrap = async () => {
    tries += 1;
    throw new Error('the server is away');
  };
  const { waitUntilReady } = backend;
  const outcomes = await Promise.allSettled([waitUntilReady.call(backend), waitUntilReady.call(backend)]);
  const again = await Promise.allSettled([waitUntilReady.call(backend)]);
  if (tries !== 1 || [...outcomes, ...again].some(({ status }) => status !== 'rejected'))
    throw new Error(HINT);
  expect(tries).toBe(1);
});

/** Executions after which PL/pgSQL may keep a generic plan: five. */
const EXECUTIONS = 7;
const TAKE = `SELECT FROM ${POSTGRES_SCHEMA}.move_to_active('plans', 'token', 30000, 0, 'worker', NULL, NULL)`;
const ADD_WAITING = `
  INSERT INTO ${POSTGRES_SCHEMA}.job (queue, id, seq, name, state, added_at_ms)
  SELECT 'plans', n::text, n, 'job', 'waiting', 0 FROM generate_series(1, 1000) n`;

test('a job is taken by an index after its empty table was analysed, which requires the setting of the connections', async () => {
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
  // If this is 0 one day, the setting is not needed any more (ADR 27).
  expect(await scansOf(other)).toBeGreaterThan(0);
});

/** Number of scans of the whole table of jobs while one job is taken. */
async function scansOf(client: pg.PoolClient): Promise<number> {
  await client.query('BEGIN');
  await client.query(TAKE);
  const { rows } = await client.query<{ scans: number }>(
    `SELECT seq_scan::int AS scans FROM pg_stat_xact_user_tables WHERE relid = '${POSTGRES_SCHEMA}.job'::regclass`,
  );
  await client.query('ROLLBACK');
  return rows[0]?.scans ?? 0;
}
