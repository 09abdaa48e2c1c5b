import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, createMetricsRegistry, Lifecycle } from '@runhook/runtime';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { type Dispatcher, openDispatcher } from '../src/dispatcher.ts';
import { fanOut } from '../src/fan-out.ts';
import { Permits } from '../src/policy/permits.ts';
import { createDispatcherMetrics } from '../src/telemetry/metrics.ts';
import { noSpans } from '../src/telemetry/spans.ts';
import { type Harness, openHarness } from './harness.ts';

/** An account with 8 of them may acquire one more, and with 9 none. */
const PERMITS = 17;
/** Longer than a test: the events of an account that releases no permit wait. */
const LONG_MS = 3_600_000;

/** Calls the fan-out without a worker, so that tests control its permits. */
describe('the fan-out of an event whose account has no permits', () => {
  let harness: Harness;
  let lifecycle: Lifecycle;
  beforeEach(async () => {
    const [backend] = oneQueueBackend();
    harness = await openHarness(backend as never);
  });
  afterEach(async () => {
    await lifecycle.close('test');
    await harness.close();
  });

  const event = () => exampleEvent('job.run.started', harness.account.jobs[0] as never);
  const subscribe = (path: string) =>
    seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: `${harness.receiver.url}${path}`,
    });
  const ignoreCommit = () => {};

  function open(): { dispatcher: Dispatcher; permits: Permits } {
    const logger = createLogger({ service: 'dispatcher', level: 'silent' });
    lifecycle = new Lifecycle({ logger });
    const dispatcher = openDispatcher({
      ...harness,
      lifecycle,
      stopping: new AbortController().signal,
      drainEnd: new AbortController().signal,
      writes: { track: (_, write) => write() },
      clock: { nowMs: Date.now } as never,
      deliveryQueue: {
        wakeLanes: async () => {},
        findQueued: async () => new Set(),
        requeue: async () => {},
      } as never,
      metrics: createDispatcherMetrics(createMetricsRegistry({ service: 'test' })),
      spans: noSpans,
      logger,
    });
    const permits = new Permits(PERMITS, PERMITS, LONG_MS);
    dispatcher.requests.permits.firstAttempts = permits;
    return { dispatcher, permits };
  }

  test('defers the committed deliveries once their plan is too old, although other attempts go on', async () => {
    await subscribe('/one');
    const { dispatcher, permits } = open();
    permits.tryAcquire(harness.account.id, 9);
    expect(await fanOut(dispatcher, event(), true, ignoreCommit)).toMatchObject({ kind: 'fanned_out' });
    expect(harness.receiver.requests).toHaveLength(0);
    const { rows } = await harness.database.pool.query(
      'SELECT FROM deliveries WHERE deferred_at IS NOT NULL',
    );
    expect(rows).toHaveLength(1);
  });

  test('acquires permits only for committed deliveries that are not deferred', async () => {
    const { id } = await subscribe('/blocked');
    await subscribe('/open');
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
