import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { deliveryIdFor } from '@runhook/contract';
import { exampleEvent, oneQueueBackend } from '@runhook/testing';
import { deliver } from '../src/deliver.ts';
import { drainLane } from '../src/lane.ts';
import { StoppingError } from '../src/record/retry-while-unavailable.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';
import { openWithoutWorkers, type WithoutWorkers } from './without-workers.ts';

/** Calls the processing of retries and lanes without a worker, so that tests control its statements and its stop. */
describe('the processing of queued deliveries', () => {
  let harness: Harness;
  let subscriptionId: string;
  let opened: WithoutWorkers | undefined;
  beforeEach(async () => {
    const [backend] = oneQueueBackend();
    harness = await openHarness(backend as never);
    subscriptionId = (await harness.subscribe('/one')).id;
  });
  afterEach(async () => {
    await opened?.close();
    await harness.close();
  });

  const open = (stopping = new AbortController().signal) => {
    opened = openWithoutWorkers(harness, stopping);
    return opened.dispatcher;
  };
  const lane = () => ({ subscriptionId, accountId: harness.account.id });
  const query = (sql: string) => harness.database.pool.query(sql);

  async function insert(count: number, isDeferred: boolean): Promise<string[]> {
    const commits = Array.from({ length: count }, () => {
      const event = exampleEvent('job.run.started', harness.account.jobs[0] as never);
      const id = deliveryIdFor(event.eventId, subscriptionId);
      return { event, version: null, deliveries: [{ id, subscriptionId, webhookName: 'x', isDeferred }] };
    });
    await commitResults(harness.database.pool, commits);
    return commits.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  }

  /** Inserts more deferred deliveries of an inactive subscription than one claim takes. */
  async function insertInactive(): Promise<void> {
    await insert(20, true);
    await query('UPDATE subscriptions SET active = false');
  }

  async function countByStatus(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { status } of await deliveriesOf(harness.database)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  test('a retry is not attempted once the dispatcher stops', async () => {
    const [deliveryId = ''] = await insert(1, false);
    await query('UPDATE deliveries SET next_attempt_at = now()');
    const job = { deliveryId, cycle: 0, accountId: harness.account.id };
    await expect(deliver(open(AbortSignal.abort()), job)).rejects.toThrow(StoppingError);
    expect(harness.receiver.requests).toHaveLength(0);
    expect(await countByStatus()).toEqual({ pending: 1 });
  });

  test('a lane claims no probe once the dispatcher stops', async () => {
    await insert(1, true);
    await query(`UPDATE subscriptions SET blocked_until = now() + interval '1 hour', probe_at = now()`);
    await expect(drainLane(open(AbortSignal.abort()), lane())).rejects.toThrow(StoppingError);
    expect(harness.receiver.requests).toHaveLength(0);
    const { rows } = await query('SELECT FROM subscriptions WHERE probe_at <= now()');
    expect(rows).toHaveLength(1);
  });

  test('claimed deliveries of an inactive subscription are cancelled although its further ones cannot be loaded', async () => {
    await insertInactive();
    const dispatcher = open();
    jest.spyOn(dispatcher.record, 'loadDeferredKeys').mockRejectedValue(new Error('rejected'));
    await expect(drainLane(dispatcher, lane())).rejects.toThrow('rejected');
    expect(await countByStatus()).toEqual({ cancelled: 16, pending: 4 });
    const { rows } = await query('SELECT FROM deliveries WHERE deferred_at IS NOT NULL');
    expect(rows).toHaveLength(4);
  });

  test('further deliveries of a lane are not cancelled if their subscription is active after their keys were read', async () => {
    await insertInactive();
    const dispatcher = open();
    const { record } = dispatcher;
    const loadDeferredKeys = record.loadDeferredKeys.bind(record);
    jest.spyOn(record, 'loadDeferredKeys').mockImplementation(async (options) => {
      const keys = await loadDeferredKeys(options);
      await query('UPDATE subscriptions SET active = true');
      return keys;
    });
    const cancel = jest.spyOn(record, 'cancelDelivery');
    expect(await drainLane(dispatcher, lane())).toEqual({ kind: 'done' });
    expect(await countByStatus()).toEqual({ cancelled: 16, delivered: 4 });
    expect(cancel).toHaveBeenCalledTimes(16);
  });
});
