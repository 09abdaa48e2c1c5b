import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, JOB_RUN_EVENTS, shardPrefix, WEBHOOK_DELIVERIES } from '@runhook/contract';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
} from '@runhook/queue';
import { connectRedis, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { reconcileLanes } from '../../src/maintenance/lanes.ts';
import { reconcile } from '../../src/maintenance/reconcile.ts';
import { type Harness, openHarness } from '../harness.ts';
import { commitResults, insertUndispatched } from '../log-rows.ts';

const hasRedis = queueBackends().some(({ name }) => name === 'Redis');

/** An operator or a script may delete a list on Redis by mistake. */
(hasRedis ? describe : describe.skip)(
  'after a list of the queue was deleted while the keys of its jobs remain',
  () => {
    let harness: Harness;
    let events: EventQueue;
    let deliveries: DeliveryQueue;
    beforeEach(async () => {
      harness = await openHarness({ name: 'Redis' });
      const backend = createQueueBackend(harness.queueUrl);
      events = openEventQueue(backend, () => undefined);
      deliveries = openDeliveryQueue(backend, () => undefined);
    });
    afterEach(async () => {
      await Promise.all([events.close(), deliveries.close()]);
      await harness.close();
    });

    async function drop(queue: string, list: string): Promise<void> {
      const redis = await connectRedis(harness.queueUrl);
      await redis.send('SELECT', new URL(harness.queueUrl).pathname.slice(1));
      expect(await redis.send('DEL', `${shardPrefix(0)}:${queue}:${list}`)).toBe(1);
      redis.close();
    }

    const run = () =>
      reconcile({
        pool: harness.database.pool,
        events,
        deliveries,
        retryPolicy: { retriesMax: 5, baseDelayMs: 20 },
        quarantine: harness.quarantine,
        graceMs: 0,
        eventGraceMs: 0,
      });

    const newEvent = (runId: number) =>
      exampleEvent('job.run.started', harness.account.jobs[0] as never, 8_000 + runId);

    async function pendingDelivery(isDeferred: boolean) {
      const { id, name } = await seedSubscription(harness.database, {
        accountId: harness.account.id,
        clientUrl: harness.receiver.url,
      });
      const event = newEvent(0);
      const delivery = {
        id: deliveryIdFor(event.eventId, id),
        subscriptionId: id,
        webhookName: name,
        isDeferred,
      };
      await commitResults(harness.database.pool, [{ event, version: null, deliveries: [delivery] }]);
      return delivery;
    }

    test('the reconciler queues a retry again whose job is in no list', async () => {
      const { id } = await pendingDelivery(false);
      await harness.database.pool.query('UPDATE deliveries SET attempt_count = 1');
      const retry = { deliveryId: id, cycle: 0, accountId: harness.account.id, attemptsLeft: 5 };
      await deliveries.add([{ ...retry, delayMs: 3_600_000 }]);
      expect(await run()).toEqual({ event: 0, delivery: 0 });
      await drop(WEBHOOK_DELIVERIES, 'delayed');
      expect(await run()).toEqual({ event: 0, delivery: 1 });
      expect(await deliveries.counts()).toMatchObject({ waiting: 1, delayed: 0 });
      expect(await run()).toEqual({ event: 0, delivery: 0 });
    });

    test('the reconciler queues the events of a separate job and of a shared job again', async () => {
      const those = [newEvent(1), newEvent(2), newEvent(3)];
      for (const event of those) await insertUndispatched(harness.database, event);
      await events.addEach(those.slice(0, 1));
      await events.add(those.slice(1));
      expect(await run()).toEqual({ event: 0, delivery: 0 });
      await drop(JOB_RUN_EVENTS, 'wait');
      expect(await run()).toEqual({ event: 3, delivery: 0 });
      expect(await events.counts()).toMatchObject({ waiting: 3 });
      expect(await run()).toEqual({ event: 0, delivery: 0 });
    });

    test('a lane gets another job for the one that is in no list', async () => {
      const { subscriptionId } = await pendingDelivery(true);
      const lane = { subscriptionId, accountId: harness.account.id };
      await deliveries.wakeLanes([{ ...lane, delayMs: 3_600_000 }]);
      const { quarantine, database } = harness;
      const dependencies = { pool: database.pool, deliveries, quarantine };
      expect(await reconcileLanes(dependencies)).toMatchObject({ waiting: 1, expired: 0 });
      expect(await deliveries.counts()).toMatchObject({ waiting: 0, delayed: 1 });
      await drop(WEBHOOK_DELIVERIES, 'delayed');
      expect(await reconcileLanes(dependencies)).toMatchObject({ waiting: 1, expired: 0 });
      expect(await deliveries.counts()).toMatchObject({ waiting: 1, delayed: 0 });
    });
  },
);
