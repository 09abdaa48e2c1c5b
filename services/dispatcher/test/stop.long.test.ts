import { expect, test } from '@jest/globals';
import { eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import { openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

/** Duration of the lock: less than the deadline of an attempt and the 9 s that a stop gives its result beyond it. */
const LOCKED_SECONDS = 7;

test.each(oneQueueBackend())(
  'a stop records the result of an attempt whose commit waits for seconds, with the queue on $name',
  async (backend) => {
    const harness = await openHarness(backend);
    const lock = await harness.database.pool.connect();
    try {
      await harness.subscribe('/one');
      const dispatcher = await harness.startDispatcher({ deliveryTimeoutMs: 1_000 });
      await lock.query('BEGIN; LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE');
      await harness.publisher.publish(exampleEvent('job.run.started', harness.account.jobs[0] as never, 1));
      await harness.receiver.waitFor(1);
      const stopped = dispatcher.stop();
      await lock.query('SELECT pg_sleep($1)', [LOCKED_SECONDS]);
      await lock.query('COMMIT');
      await stopped;
      await harness.startDispatcher();
      await eventually(async () => {
        expect(await deliveriesOf(harness.database)).toMatchObject([
          { status: 'delivered', attempt_count: 1 },
        ]);
      });
      expect(harness.receiver.requests).toHaveLength(1);
    } finally {
      await lock.query('ROLLBACK');
      lock.release();
      await harness.close();
    }
  },
);
