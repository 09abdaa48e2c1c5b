import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { countDispatchedEvents, eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import type { Dispatcher } from '../src/dispatcher.ts';
import { fanOut } from '../src/fan-out.ts';
import { Permits } from '../src/policy/permits.ts';
import { StoppingError } from '../src/record/retry-while-unavailable.ts';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';
import { openWithoutWorkers, type WithoutWorkers } from './without-workers.ts';

/** An account that has 8 of these permits may acquire one more, and with 9 none. */
const PERMITS = 17;
/** Longer than a test: the events of an account that releases no permit wait. */
const LONG_MS = 3_600_000;

/** Calls the fan-out without a worker, so that tests control its permits and its stop. */
describe('the fan-out of an event', () => {
  let harness: Harness;
  let opened: WithoutWorkers;
  beforeEach(async () => {
    const [backend] = oneQueueBackend();
    harness = await openHarness(backend as never);
  });
  afterEach(async () => {
    await opened.close();
    await harness.close();
  });

  const event = () => exampleEvent('job.run.started', harness.account.jobs[0] as never);
  const ignoreCommit = () => {};

  function open(stopping = new AbortController().signal): { dispatcher: Dispatcher; permits: Permits } {
    opened = openWithoutWorkers(harness, stopping);
    const { dispatcher } = opened;
    const permits = new Permits(PERMITS, PERMITS, LONG_MS);
    dispatcher.requests.permits.firstAttempts = permits;
    return { dispatcher, permits };
  }

  /** Resolves once an event waits for permits or has them. */
  function whenAcquiring(permits: Permits): Promise<void> {
    const acquire = permits.acquire.bind(permits);
    return new Promise((resolve) => {
      jest.spyOn(permits, 'acquire').mockImplementation((...parameters) => {
        resolve();
        return acquire(...parameters);
      });
    });
  }

  test('sends no request if the dispatcher stops while the event waits for permits, and the next dispatcher commits the event', async () => {
    await harness.subscribe('/one');
    const stop = new AbortController();
    const { dispatcher, permits } = open(stop.signal);
    permits.tryAcquire(harness.account.id, 9);
    const acquiring = whenAcquiring(permits);
    const published = event();
    const result = fanOut(dispatcher, published, false, ignoreCommit);
    const stopped = expect(result).rejects.toThrow(StoppingError);
    await acquiring;
    stop.abort();
    permits.release(harness.account.id, 9);
    await stopped;
    expect(harness.receiver.requests).toHaveLength(0);
    expect(permits.tryAcquire(harness.account.id, PERMITS)).toBe(PERMITS);
    await opened.close();
    await fanOut(open().dispatcher, published, true, ignoreCommit);
    expect(await deliveriesOf(harness.database)).toHaveLength(1);
    expect(await countDispatchedEvents(harness.database)).toBe(1);
  });

  test('commits no deliveries of an interrupted job once the dispatcher stops', async () => {
    await harness.subscribe('/one');
    const { dispatcher } = open(AbortSignal.abort());
    const result = fanOut(dispatcher, event(), true, ignoreCommit);
    await expect(result).rejects.toThrow(StoppingError);
    expect(harness.receiver.requests).toHaveLength(0);
    expect(await deliveriesOf(harness.database)).toHaveLength(0);
  });

  test('makes no delivery for a webhook that has only a feed', async () => {
    const { id } = await harness.subscribe('/one');
    await harness.database.pool.query(`UPDATE subscriptions SET client_url = '' WHERE id = $1`, [id]);
    const { dispatcher } = open();
    await fanOut(dispatcher, event(), false, ignoreCommit);
    expect(await deliveriesOf(harness.database)).toHaveLength(0);
    expect(await countDispatchedEvents(harness.database)).toBe(1);
  });

  test('does not wait for permits once the dispatcher stops', async () => {
    await harness.subscribe('/one');
    const { dispatcher, permits } = open(AbortSignal.abort());
    const acquire = jest.spyOn(permits, 'acquire');
    await expect(fanOut(dispatcher, event(), false, ignoreCommit)).rejects.toThrow(StoppingError);
    expect(acquire).not.toHaveBeenCalled();
  });

  test('defers deliveries of an interrupted job, which are committed before their attempts, once they have waited 500 ms for permits', async () => {
    await harness.subscribe('/one');
    const { dispatcher, permits } = open();
    permits.tryAcquire(harness.account.id, 9);
    expect(await fanOut(dispatcher, event(), true, ignoreCommit)).toMatchObject({ kind: 'fanned_out' });
    expect(harness.receiver.requests).toHaveLength(0);
    const { rows } = await harness.database.pool.query(
      'SELECT FROM deliveries WHERE deferred_at IS NOT NULL',
    );
    expect(rows).toHaveLength(1);
  });

  test('acquires no permits for a blocked delivery, so that the only free permit suffices for the other one', async () => {
    const { id } = await harness.subscribe('/blocked');
    await harness.subscribe('/open');
    await harness.database.pool.query(
      `UPDATE subscriptions SET blocked_until = now() + interval '1 hour' WHERE id = $1`,
      [id],
    );
    const { dispatcher, permits } = open();
    permits.tryAcquire(harness.account.id, 8);
    // A commit of half a second, as on a busy machine, defers the other delivery too; then another event is used.
    await eventually(async () => {
      await fanOut(dispatcher, event(), true, ignoreCommit);
      expect(harness.receiver.requests.map(({ path }) => path)).toEqual(['/open']);
    });
  });
});
