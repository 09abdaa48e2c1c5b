import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { idDay } from '@runhook/contract';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createHealth, createLogger, createMetricsRegistry, Lifecycle } from '@runhook/runtime';
import {
  createTestDatabase,
  eventually,
  exampleEvent,
  seedAccount,
  type TestAccount,
} from '@runhook/testing';
import { DispatchRecord } from '../../src/record/dispatch-record.ts';
import { createDispatcherMetrics } from '../../src/telemetry/metrics.ts';
import { watchWrites } from '../../src/telemetry/record-writes.ts';
import { testQuarantine } from '../silent-quarantine.ts';

let admin: PrismaDatabase;
let account: TestAccount;
let role: string;
let ofRole: PrismaDatabase;
let process: ReturnType<typeof openProcess>;
const closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  const { url, drop } = await createTestDatabase();
  closers.push(drop);
  admin = openPrismaDatabase({ url });
  closers.push(() => admin.close());
  account = await seedAccount(admin);
  role = `${new URL(url).pathname.slice(1)}_dispatcher`;
  await admin.pool.query(`
    CREATE ROLE ${role} LOGIN PASSWORD 'secret';
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`);
  closers.push(() => admin.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
  ofRole = openPrismaDatabase({
    url: Object.assign(new URL(url), { username: role, password: 'secret' }).href,
    connectionsMax: 2,
  });
  closers.push(() => ofRole.close());
  process = openProcess(ofRole.pool.options.connectionString as string);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Opens the record of a dispatcher and the watch of its writes, with a clock that the test sets. */
function openProcess(databaseUrl: string) {
  const logger = createLogger({ service: 'test', level: 'silent' });
  const lifecycle = new Lifecycle({ logger });
  const registry = createMetricsRegistry({ service: 'test' });
  const health = createHealth({ lifecycle, logger });
  const clock = { nowMs: 0 };
  const watch = { settings: { databaseUrl }, health, registry, lifecycle, logger };
  const writes = watchWrites(watch, ofRole, () => clock.nowMs);
  const stop = new AbortController();
  const record = new DispatchRecord({
    pool: ofRole.pool,
    writes,
    stopping: stop.signal,
    drainEnd: stop.signal,
    metrics: createDispatcherMetrics(registry),
    logger,
    quarantine: testQuarantine(ofRole.pool),
  });
  closers.push(() => lifecycle.close('test'));
  closers.push(async () => stop.abort());
  return { record, writes, health, registry, clock };
}

/** Commits an event, or records the result of an attempt. */
function write(table: 'events' | 'attempts', runId: number): Promise<unknown> {
  const event = exampleEvent('job.run.started', account.jobs[0] as never, runId);
  if (table === 'events') return process.record.commits.commitEvent({ event, version: null, deliveries: [] });
  return process.record.commits.recordAttempt({
    deliveryId: `wdl_${runId}`,
    accountId: account.id,
    day: idDay('event', event.eventId),
    number: 1,
    trigger: 'automatic',
    startedAt: new Date(),
    durationMs: 1,
    httpStatusCode: 500,
    error: null,
    requestHeaders: {},
    response: null,
    timings: null,
    status: 'failed',
    reason: null,
    nextDelayMs: null,
  });
}

const metric = async (name: string) =>
  Number(new RegExp(`^${name}.*\\} (\\d+)$`, 'm').exec(await process.registry.metrics())?.[1]);
const faults = () => metric('runhook_job_errors_total.*queue="webhook-deliveries"');

test.each(['events', 'attempts'] as const)(
  'a dispatcher whose writes to %s are denied is not ready after 30 s, although a test write succeeds',
  async (table) => {
    const { writes, clock, health } = process;
    await admin.pool.query(`REVOKE INSERT ON ${table} FROM ${role}`);
    const written = table === 'attempts' ? write(table, 1) : undefined;
    for (const nowMs of [30_000, 60_000]) {
      const before = await faults();
      clock.nowMs = nowMs;
      // The result of an attempt is retried until it is recorded, while the job of an event fails and is retried.
      if (written === undefined) await expect(write(table, 1)).rejects.toMatchObject({ code: '42501' });
      else await eventually(async () => expect(await faults()).toBeGreaterThan(before));
    }
    await writes.check();
    expect(writes.state).toBe('process_fault');
    expect(await health.report('ready')).toMatchObject({
      ok: false,
      checks: { 'record connections': { ok: false, error: 'RECORD_WRITES_FAIL' } },
    });
    expect(await metric('runhook_record_writable')).toBe(0);

    await admin.pool.query(`GRANT INSERT ON ${table} TO ${role}`);
    await (written ?? write(table, 2));
    await writes.check();
    expect(writes.state).toBe('writable');
    expect(await metric('runhook_record_writable')).toBe(1);
  },
);

test("an event whose data PostgreSQL rejects does not affect the state of a dispatcher's writes", async () => {
  const { writes, clock } = process;
  await admin.pool.query('ALTER TABLE events ADD CONSTRAINT reject CHECK (run_id <> 666) NOT VALID');
  clock.nowMs = 30_000;
  await expect(write('events', 666)).rejects.toMatchObject({ code: '23514' });
  await writes.check();
  expect(writes.state).toBe('writable');
});
