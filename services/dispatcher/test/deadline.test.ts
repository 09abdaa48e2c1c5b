import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually, exampleEvent, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf } from './log-rows.ts';

const DEADLINE_MS = 5_000;

let harness: Harness;
beforeEach(async () => {
  harness = await openHarness({ name: 'PostgreSQL' });
});
afterEach(() => harness.close());

test('a response after the deadline, a slow body, and silence after the headers each count as 504', async () => {
  for (const name of ['late', 'drip', 'hang']) {
    const clientUrl = `${harness.receiver.url}/${name}`;
    await seedSubscription(harness.database, { accountId: harness.account.id, clientUrl, name });
  }
  let respondLate = () => {};
  const lateResponse = new Promise<{ status: number }>((resolve) => {
    respondLate = () => resolve({ status: 200 });
  });
  harness.receiver.respondWith(({ path }) => {
    if (path === '/late') return lateResponse;
    if (path === '/drip') return { status: 200, drip: { bytes: 1, intervalMs: 1_000 } };
    return { status: 200, headers: { 'content-length': '10' }, drip: { bytes: 1, intervalMs: 60_000 } };
  });
  await harness.startDispatcher({ deliveryTimeoutMs: DEADLINE_MS, deliveryMaxRetries: 0 });
  await harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never));

  const deliveries = await eventually(
    async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed']);
      return rows;
    },
    { timeoutMs: 90_000 },
  );
  respondLate();
  for (const { id, webhook_name } of deliveries) {
    const [attempt] = await attemptsOf(harness.database, id);
    expect(attempt).toMatchObject({
      http_status_code: 504,
      error_code: 'timeout',
      error_message: 'Timed out after 5 s.',
    });
    expect(attempt?.duration_ms).toBeGreaterThanOrEqual(DEADLINE_MS - 50);
    // The log contains what was received before the deadline.
    expect(attempt?.response_headers === null).toBe(webhook_name === 'late');
  }
});
