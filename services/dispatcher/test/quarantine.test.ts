import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, type JobRunEvent, laneJobId } from '@runhook/contract';
import { listQuarantined } from '@runhook/database';
import {
  createQueueBackend,
  type DeliveryQueue,
  JobsRejectedError,
  openDeliveryQueue,
  openEventQueue,
  type QueuedDelivery,
} from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import { reconcile } from '../src/maintenance/reconcile.ts';
import { withDeliveryQuarantine, withEventQuarantine } from '../src/record/quarantine.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf, insertUndispatched } from './log-rows.ts';
import { testQuarantine } from './silent-quarantine.ts';

const BAD_RUN = 666;

/** Returns the number of commits that a dispatcher has tried, from its metrics. */
const countCommits = (metrics: string): number =>
  [
    ...metrics.matchAll(
      /^runhook_batch_size_count\{[^}]*batch="(?:commit_attempted|record_attempts)"[^}]*\} (\d+)$/gm,
    ),
  ].reduce((sum, [, count]) => sum + Number(count), 0);

describe.each(oneQueueBackend())('an item that a store rejects, with the queue on $name', (backend) => {
  let harness: Harness;
  const closers: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
    await harness.close();
  });

  const event = (runId: number): JobRunEvent =>
    exampleEvent('job.run.started', harness.account.jobs[0] as never, runId);
  const listItems = () => listQuarantined(harness.database.pool, { limit: 100 });
  const runsOf = () =>
    harness.receiver.requests.map(
      ({ body }) => (JSON.parse(String(body)) as { data: { runId: string } }).data.runId,
    );

  /** Makes PostgreSQL reject new and changed rows of a table that meet a condition. */
  const rejectRows = (table: string, condition: string) =>
    harness.database.pool.query(
      `ALTER TABLE ${table} ADD CONSTRAINT reject_${table} CHECK (NOT (${condition})) NOT VALID`,
    );

  test('two messages with the same id that are set aside at the same time get different new ids', async () => {
    const first = event(1);
    const second = { ...first, data: { ...first.data, runReason: 'of another run' } } as JobRunEvent;
    const quarantine = testQuarantine(harness.database.pool);
    const rejection = { kind: 'out_of_range', reason: 'of another time' } as const;
    for (const message of [first, second, first])
      await quarantine.setAsideMessage(rejection, message, 1_800_000_000_000);
    const ids = (await listItems()).map(({ message }) => (message as JobRunEvent).eventId);
    expect(new Set([...ids, first.eventId]).size).toBe(3);
    expect(ids).toHaveLength(2);
  });

  test('an event is set aside with its message after one request, and no other event waits for it', async () => {
    await harness.subscribe('/one');
    await rejectRows('deliveries', `run_id = ${BAD_RUN}`);
    const { port } = await harness.startDispatcher();
    const runs = [1, 2, BAD_RUN, 3, 4];
    const events = openEventQueue(createQueueBackend(harness.queueUrl), () => undefined);
    closers.push(() => events.close());
    await events.add(runs.map(event));
    await eventually(async () => expect(await listItems()).toHaveLength(1), { timeoutMs: 30_000 });
    expect(await listItems()).toMatchObject([
      {
        accountId: harness.account.id,
        kind: 'event',
        reason: expect.stringMatching(/^23514: .*reject_deliveries/),
        message: { data: { runId: String(BAD_RUN) } },
      },
    ]);
    await eventually(async () => {
      expect((await deliveriesOf(harness.database)).map(({ status }) => status)).toEqual(
        Array(4).fill('delivered'),
      );
      expect(await events.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    });
    expect(runsOf().sort()).toEqual(runs.map(String).sort());
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/^runhook_quarantined_total\{[^}]*kind="event"[^}]*\} 1$/m);
  });

  test('a delivery whose attempt cannot be recorded is set aside, and its request is not sent again', async () => {
    const { id } = await harness.subscribe('/bad');
    await harness.subscribe('/good');
    harness.receiver.respondWith(({ path }) => ({ status: path === '/bad' ? 500 : 200 }));
    await rejectRows('attempts', 'http_status_code = 500');
    await rejectRows('deliveries', `subscription_id = '${id}' AND attempt_count > 0`);
    await harness.startDispatcher();
    await harness.publisher.publish(event(1));
    await eventually(async () => expect(await listItems()).toMatchObject([{ kind: 'delivery' }]));
    await harness.publisher.publish(event(2));
    await eventually(async () => expect(await listItems()).toHaveLength(2));
    await eventually(async () => {
      const statuses = (await deliveriesOf(harness.database)).map(({ status }) => status);
      expect(statuses.sort()).toEqual(['delivered', 'delivered', 'pending', 'pending']);
    });
    expect(harness.receiver.requests.map(({ path }) => path).sort()).toEqual([
      '/bad',
      '/bad',
      '/good',
      '/good',
    ]);
  });

  test('a delivery whose event cannot be read is set aside, and nothing is sent', async () => {
    const { id, name } = await harness.subscribe('/one');
    const unreadable = event(1);
    const deliveryId = deliveryIdFor(unreadable.eventId, id);
    const delivery = { id: deliveryId, subscriptionId: id, webhookName: name, isDeferred: false };
    const { pool } = harness.database;
    await commitResults(pool, [{ event: unreadable, version: null, deliveries: [delivery] }]);
    await pool.query(`UPDATE events SET data = '["1"]'`);
    const deliveries = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    closers.push(() => deliveries.close());
    const job = { deliveryId, cycle: 0, accountId: harness.account.id };
    await deliveries.add([{ ...job, delayMs: 0, attemptsLeft: 5 }]);
    await harness.startDispatcher();
    await eventually(async () =>
      expect(await listItems()).toMatchObject([{ kind: 'delivery', key: deliveryId }]),
    );
    expect(harness.receiver.requests).toEqual([]);
  });

  test.each([
    { table: 'attempts', status: 500, recorded: 'pending' },
    { table: 'events', status: 200, recorded: 'delivered' },
  ])(
    'a result is recorded after the conversion of a default partition, which rejects rows of $table, and its request is not sent again',
    async ({ table, status, recorded }) => {
      await harness.subscribe('/one');
      harness.receiver.respondWith(() => ({ status }));
      const constraint = `${table}_default_20261101_20261103`;
      await harness.database.pool.query(
        `ALTER TABLE ${table} ADD CONSTRAINT ${constraint} CHECK (day < '2026-11-01') NOT VALID`,
      );
      const { port } = await harness.startDispatcher({ retryBaseDelayMs: 60_000 });
      await harness.publisher.publish(event(1));
      await harness.receiver.waitFor(1);
      // One commit may succeed. The number of rejected ones exceeds the tries after which an item is set aside.
      await eventually(async () => {
        const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
        expect(countCommits(metrics)).toBeGreaterThan(4);
      });
      await harness.database.pool.query(`ALTER TABLE ${table} DROP CONSTRAINT ${constraint}`);
      await eventually(async () =>
        expect(await deliveriesOf(harness.database)).toMatchObject([{ status: recorded, attempt_count: 1 }]),
      );
      expect(await listItems()).toEqual([]);
      expect(harness.receiver.requests).toHaveLength(1);
    },
  );

  test('the reconciler sets aside an event that it cannot read, queues the others again, and skips it from then on', async () => {
    const events = openEventQueue(createQueueBackend(harness.queueUrl), () => undefined);
    const deliveries = openDeliveryQueue(createQueueBackend(harness.queueUrl), () => undefined);
    closers.push(
      () => events.close(),
      () => deliveries.close(),
    );
    const lost = Array.from({ length: 20 }, (_, run) => event(run));
    for (const one of lost) await insertUndispatched(harness.database, one);
    const bad = lost[7] as JobRunEvent;
    await harness.database.pool.query(`UPDATE events SET data = '[]' WHERE id = $1`, [bad.eventId]);
    const run = () =>
      reconcile({
        pool: harness.database.pool,
        events,
        deliveries,
        quarantine: harness.quarantine,
        retryPolicy: { retriesMax: 5, baseDelayMs: 20 },
        graceMs: 0,
        eventGraceMs: 0,
      });
    expect(await run()).toEqual({ event: 19, delivery: 0 });
    expect(await listItems()).toMatchObject([{ kind: 'event', key: bad.eventId }]);
    expect(await events.counts()).toMatchObject({ waiting: 19 });
    expect(await run()).toEqual({ event: 0, delivery: 0 });
  });

  test('events and deliveries that the queue rejects are set aside, and the call for the others resolves', async () => {
    const queueBackend = createQueueBackend(harness.queueUrl);
    const events = withEventQuarantine(
      openEventQueue(queueBackend, () => undefined),
      harness.quarantine,
    );
    const deliveries = withDeliveryQuarantine(
      openDeliveryQueue(queueBackend, () => undefined),
      harness.quarantine,
    );
    closers.push(
      () => events.close(),
      () => deliveries.close(),
    );
    const toJSON = () => {
      throw new TypeError('cannot be encoded');
    };
    const bad = event(BAD_RUN);
    Object.assign(bad.data, { toJSON });
    await events.addEach([event(1), bad, event(2)]);
    expect(await events.counts()).toMatchObject({ waiting: 2 });
    const delivery = (index: number): QueuedDelivery => ({
      deliveryId: `wdl_${index}`,
      cycle: 0,
      accountId: 1,
      delayMs: 0,
      attemptsLeft: 1,
    });
    const poisoned = { ...delivery(2), cycle: { toJSON, toString: () => '0' } as never };
    await deliveries.add([delivery(1), poisoned, delivery(3)]);
    expect(await deliveries.counts()).toMatchObject({ waiting: 2 });
    // Repeats calls of the reconciler and the audit: quarantined items stay so, and later ones are queued.
    await events.requeue([bad, event(3)]);
    expect(await events.counts()).toMatchObject({ waiting: 3 });
    await deliveries.requeue([poisoned, delivery(4)]);
    expect(await deliveries.counts()).toMatchObject({ waiting: 3 });
    expect(await listItems()).toMatchObject([
      { kind: 'delivery', key: 'wdl_2', reason: 'cannot be encoded' },
      { kind: 'event', key: bad.eventId, reason: 'cannot be encoded' },
    ]);
  });

  test('a lane that the queue rejects when it is queued again is set aside', async () => {
    const lane = { subscriptionId: 'wsu_1', accountId: 1 };
    const rejected = { jobId: laneJobId(lane), error: new TypeError('cannot be encoded') };
    const rejecting: Pick<DeliveryQueue, 'requeueLanes'> = {
      requeueLanes: async () => {
        throw new JobsRejectedError([rejected]);
      },
    };
    await withDeliveryQuarantine(rejecting as DeliveryQueue, harness.quarantine).requeueLanes([lane]);
    expect(await listItems()).toMatchObject([{ kind: 'lane', key: 'wsu_1', reason: 'cannot be encoded' }]);
  });
});
