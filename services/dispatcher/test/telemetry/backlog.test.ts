import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createQueueBackend, type EventQueue, openDeliveryQueue, openEventQueue } from '@runhook/queue';
import { createMetricsRegistry, registerDependencyMetrics } from '@runhook/runtime';
import { exampleEvent, queueBackends, seedSubscription, startTcpProxy } from '@runhook/testing';
import { createBacklogMeasure } from '../../src/telemetry/backlog.ts';
import { type Harness, openHarness } from '../harness.ts';

describe.each(queueBackends())('the backlog, with the queue on $name', (backend) => {
  const closers: (() => Promise<unknown>)[] = [];
  let harness: Harness;
  let events: EventQueue;
  let measure: () => Promise<void>;
  let registry: ReturnType<typeof createMetricsRegistry>;
  let openWithQueueProxy: () => Promise<void>;

  beforeEach(async () => {
    harness = await openHarness(backend);
    const proxy = await startTcpProxy(harness.queueUrl);
    openWithQueueProxy = () => proxy.cut();
    const queue = createQueueBackend(proxy.url);
    events = openEventQueue(queue, () => undefined);
    const deliveries = openDeliveryQueue(queue, () => undefined);
    closers.push(
      () => harness.close(),
      () => proxy.close(),
      () => events.close().catch(() => undefined),
      () => deliveries.close().catch(() => undefined),
    );
    registry = createMetricsRegistry({ service: 'test' });
    const dependencies = registerDependencyMetrics(registry);
    measure = createBacklogMeasure({
      pool: harness.database.pool,
      events,
      deliveries,
      dependencies,
      registry,
    });
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function samples(name: string): Promise<Record<string, number>> {
    const metric = await registry.getSingleMetric(name)?.get();
    const entries = (metric?.values ?? []).map(({ labels, value }) => [
      Object.values(labels).join(' '),
      value,
    ]);
    return Object.fromEntries(entries);
  }
  const ages = () => samples('runhook_backlog_oldest_due_age_seconds');
  const jobs = () => samples('runhook_backlog_jobs');

  test('reports the size of the default partition of each table', async () => {
    const bytes = () => samples('runhook_default_partition_bytes');
    await measure();
    expect(await bytes()).toEqual({ events: 0, deliveries: 0, attempts: 0 });
    await harness.database.pool.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
       VALUES (current_date - 90, 'old', 1, 'x', 'x', '{}')`,
    );
    await measure();
    expect(await bytes()).toEqual({ events: 8_192, deliveries: 0, attempts: 0 });
  });

  test('has an age of 0 s while no delivery and no event waits', async () => {
    await measure();
    expect(await ages()).toEqual({ 'webhook-deliveries': 0, 'job-run-events': 0 });
    expect(await jobs()).toMatchObject({ 'job-run-events waiting': 0, 'webhook-deliveries delayed': 0 });
    expect(await samples('runhook_dependency_up')).toEqual({ queue: 1, database: 1 });
  });

  test('has the age of the oldest due delivery, even if the queue has no job of it', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const { stop } = await harness.startDispatcher();
    for (const _ of [1, 2, 3]) await harness.publisher.publish(event());
    await harness.receiver.waitFor(3);
    await stop();
    // One delivery is overdue, one waits for its retry, and one is delivered.
    await harness.database.pool.query(`
      WITH numbered AS (SELECT day, id, row_number() OVER (ORDER BY id) AS n FROM deliveries)
      UPDATE deliveries d SET status = CASE WHEN n = 3 THEN 'delivered' ELSE 'pending' END,
        next_attempt_at = now() + CASE WHEN n = 1 THEN -interval '90 s' WHEN n = 2 THEN interval '90 s' END
      FROM numbered WHERE d.day = numbered.day AND d.id = numbered.id`);
    const oldestDue = async () => {
      const { rows } = await harness.database.pool.query<{ seconds: number }>(
        'SELECT extract(epoch FROM now() - min(next_attempt_at))::float8 AS seconds FROM deliveries',
      );
      return rows[0]?.seconds ?? Number.NaN;
    };
    const before = await oldestDue();
    await measure();
    const age = (await ages())['webhook-deliveries'];
    expect(before).toBeGreaterThanOrEqual(90);
    expect(age).toBeGreaterThanOrEqual(before);
    expect(age).toBeLessThanOrEqual(await oldestDue());
  });

  test('includes committed events that are not fanned out, and events that wait in the queue', async () => {
    // Events of separate calls do not share a job.
    await harness.publisher.publish(event());
    await harness.publisher.publish(event());
    await measure();
    expect((await jobs())['job-run-events waiting']).toBe(2);
    expect((await events.nextJob())?.id).toMatch(/^wev_/);
    await harness.database.pool.query(
      `INSERT INTO undispatched_events (day, event_id, account_id, created_at) VALUES (current_date, 'wev_x', 1, now() - interval '70 s')`,
    );
    await measure();
    expect((await ages())['job-run-events']).toBeGreaterThanOrEqual(70);
  });

  test('has no series for a queue that does not respond, instead of its last values', async () => {
    await harness.publisher.publish(event());
    await measure();
    await openWithQueueProxy();
    await measure();
    expect(await jobs()).toEqual({});
    expect(await samples('runhook_dependency_up')).toEqual({ queue: 0, database: 1 });
    expect(await ages()).toHaveProperty('webhook-deliveries', 0);
  });

  test('has no series for what PostgreSQL does not return, instead of its last values', async () => {
    await measure();
    expect(await samples('runhook_lanes_with_deferred')).toEqual({ '': 0 });
    await harness.database.pool.query('ALTER TABLE subscriptions RENAME TO unavailable');
    await measure();
    expect(await samples('runhook_dependency_up')).toEqual({ queue: 1, database: 0 });
    expect(await ages()).not.toHaveProperty('webhook-deliveries');
    for (const name of [
      'runhook_deferred_oldest_age_seconds',
      'runhook_accounts_over_pending_limit',
      'runhook_lanes_with_deferred',
      'runhook_default_partition_bytes',
    ])
      expect([name, await samples(name)]).toEqual([name, {}]);
  });

  const event = () => exampleEvent('job.run.started', harness.account.jobs[0] as never);
});
