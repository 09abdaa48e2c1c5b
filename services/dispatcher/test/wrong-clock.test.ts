import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

const HOUR_MS = 3_600_000;
const COUNT = 12;

describe.each(oneQueueBackend())('a dispatcher whose clock is wrong, on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(async () => {
    await harness.close();
    jest.restoreAllMocks();
  });

  test.each([
    ['an hour behind', -HOUR_MS],
    ['an hour ahead', HOUR_MS],
  ])('makes no retry before its due time when the clock is %s', async (_name, aheadMs) => {
    const now = Date.now;
    jest.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    harness.receiver.respondWith(500);
    const { port } = await harness.startDispatcher({ retryBaseDelayMs: 1_500 });
    const job = harness.account.jobs[0] as never;
    await harness.publisher.publishMany(
      Array.from({ length: COUNT }, (_, index) => exampleEvent('job.run.started', job, 9_000 + index)),
    );
    await harness.receiver.waitFor(COUNT);
    harness.receiver.respondWith(200);
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(COUNT);
    });
    const { rows } = await harness.database.pool.query<{ early: number; attempts: number }>(
      `SELECT count(*)::int AS attempts, count(*) FILTER (WHERE number > 1 AND waited < interval '0.5 seconds')::int AS early
       FROM (SELECT number, started_at - lag(started_at) OVER (PARTITION BY delivery_id ORDER BY number) AS waited
             FROM attempts) AS made`,
    );
    expect(rows[0]).toMatchObject({ early: 0 });
    expect(rows[0]?.attempts).toBeGreaterThanOrEqual(2 * COUNT);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const offset = Number(/^runhook_clock_offset_seconds\{[^}]*\} (\S+)/m.exec(metrics)?.[1]);
    expect(Math.round(offset / 60)).toBe(aheadMs / 60_000);
  });
});
