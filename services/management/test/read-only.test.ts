import { afterEach, expect, test } from '@jest/globals';
import { openDatabase, RecordWrites, requireSchema } from '@runhook/database';
import {
  createHealth,
  createHttpProbes,
  createLogger,
  createMetricsRegistry,
  Lifecycle,
  startProbeServer,
} from '@runhook/runtime';
import { createTestDatabase } from '@runhook/testing';
import { openRecordWrites } from '../src/record-writes.ts';
import { startRunsServer } from './runs/runs-server.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const READ_ONLY = `DO $$ BEGIN
  EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`;

test('with a record that is read-only for 30 s, /readyz is a 200 and degraded, and runhook_record_writable is 0', async () => {
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const admin = openDatabase({ url: testDatabase.url, connectionsMax: 1 });
  await admin.pool.query(READ_ONLY).finally(admin.close);

  const { pool, close } = openDatabase({ url: testDatabase.url });
  closers.push(close);
  const logger = createLogger({ service: 'management', level: 'silent' });
  const lifecycle = new Lifecycle({ logger });
  closers.push(() => lifecycle.close('test'));
  const registry = createMetricsRegistry({ service: 'management' });
  const health = createHealth({ lifecycle, logger });
  // The same probe of the database as in the service.
  health.register('database', 'ready', () => requireSchema(pool));
  let nowMs = 0;
  const writes = openRecordWrites({ health, registry, lifecycle, logger }, pool, () => nowMs);
  const probes = createHttpProbes({ health, registry });
  const server = await startProbeServer({ port: 0, host: '127.0.0.1', probes });
  closers.push(() => server.close());
  const get = (path: string) => fetch(`http://127.0.0.1:${server.port}${path}`);

  await writes.check();
  expect(await (await get('/readyz')).json()).not.toHaveProperty('status');
  nowMs = 30_000;
  await writes.check();
  const response = await get('/readyz');
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({
    ok: true,
    status: 'degraded',
    checks: {
      database: { ok: true },
      record: { ok: false, required: false, error: 'RECORD_NOT_WRITABLE' },
    },
  });
  expect(await (await get('/metrics')).text()).toMatch(/^runhook_record_writable\{.*\} 0$/m);
});

test.each([
  { call: 'a report', table: 'runs', path: '/runs/', key: undefined },
  { call: 'a report with an Idempotency-Key', table: 'idempotency_keys', path: '/runs/', key: 'a' },
  { call: 'a call that writes through Prisma Client', table: 'projects', path: '/jobs/', key: undefined },
])('$call that PostgreSQL rejects for 30 s makes the record unwritable', async (writeAttempts) => {
  let nowMs = 0;
  // The probe succeeds, while writes of the service fail.
  const writes = new RecordWrites({ write: async () => undefined, nowMs: () => nowMs });
  const server = await startRunsServer({ writes });
  closers.push(() => server.close());
  const job = await server.createJob('Nightly');
  const newJobBody = { name: 'x', project_name: 'another', environment_name: 'Production' };
  const body = writeAttempts.path === '/jobs/' ? newJobBody : { job_id: job.id, engine_version: '1' };
  const headers = writeAttempts.key === undefined ? {} : { 'Idempotency-Key': writeAttempts.key };
  const call = async () =>
    (await server.call('POST', writeAttempts.path, body, undefined, headers as Record<string, string>))
      .status;
  const { pool } = server.database;
  await pool.query(`ALTER TABLE ${writeAttempts.table} RENAME TO mislaid`);
  for (nowMs of [15_000, 30_000]) await expect(call()).rejects.toThrow('got the response 500');
  await writes.check();
  expect(writes.state).toBe('unwritable');
  await pool.query(`ALTER TABLE mislaid RENAME TO ${writeAttempts.table}`);
  expect(await call()).toBe(201);
  await writes.check();
  expect(writes.state).toBe('writable');
});
