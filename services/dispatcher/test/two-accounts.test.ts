import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import {
  countDispatchedEvents,
  eventually,
  exampleEvent,
  oneQueueBackend,
  seedAccount,
  seedSubscription,
  type TestAccount,
} from '@runhook/testing';
import { loadEventStates } from '../src/record/event-states.ts';
import { type Harness, openHarness } from './harness.ts';
import { commitResults, deliveriesOf } from './log-rows.ts';

describe.each(oneQueueBackend())('events of two accounts with the same id, on $name', (backend) => {
  let harness: Harness;
  let other: TestAccount;
  /** Two events with the same id, one of each account. */
  let events: [JobRunEvent, JobRunEvent];

  beforeEach(async () => {
    harness = await openHarness(backend);
    other = await seedAccount(harness.database);
    for (const [path, { id }] of [['/one', harness.account] as const, ['/other', other] as const])
      await seedSubscription(harness.database, { accountId: id, clientUrl: harness.receiver.url + path });
    const one = exampleEvent('job.run.completed', harness.account.jobs[0] as never);
    const others = exampleEvent('job.run.completed', other.jobs[0] as never);
    events = [one, { ...others, eventId: one.eventId }];
  });
  afterEach(() => harness.close());

  const expectDeliveredOnceEach = async () => {
    await eventually(async () => {
      expect(await countDispatchedEvents(harness.database)).toBe(2);
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
    });
    expect(harness.receiver.requests.map(({ path }) => path).sort()).toEqual(['/one', '/other']);
  };

  const expectEmptyQueue = async () => {
    const queue = createQueueBackend(harness.queueUrl).createQueue(JOB_RUN_EVENTS);
    try {
      await eventually(async () =>
        expect(await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')).toEqual({
          waiting: 0,
          active: 0,
          delayed: 0,
          prioritized: 0,
        }),
      );
    } finally {
      await queue.close();
    }
  };

  test('are delivered once each, although each is published three times', async () => {
    const [one, others] = events;
    for (const event of [one, others, one, others]) await harness.publisher.publish(event);
    await harness.startDispatcher();
    await expectDeliveredOnceEach();
    for (const event of [one, others]) await harness.publisher.publish(event);
    await expectEmptyQueue();
    await expectDeliveredOnceEach();
  });

  test('are two events even in one call of the publisher', async () => {
    await harness.publisher.publishMany([...events, ...events]);
    await harness.startDispatcher();
    await expectDeliveredOnceEach();
  });
});

test('an event id that two accounts use is read and claimed for each of them by one statement', async () => {
  const [backend] = oneQueueBackend();
  const harness = await openHarness(backend as never);
  try {
    const other = await seedAccount(harness.database);
    const one = exampleEvent('job.run.completed', harness.account.jobs[0] as never);
    const { accountId } = exampleEvent('job.run.completed', other.jobs[0] as never);
    const subscription = await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const { pool } = harness.database;
    const { id: subscriptionId, name: webhookName } = subscription;
    const id = deliveryIdFor(one.eventId, subscriptionId);
    const rows = [
      { event: { ...one, accountId }, version: null, deliveries: [] },
      { event: one, version: null, deliveries: [{ id, subscriptionId, webhookName, isDeferred: true }] },
    ];
    expect(await commitResults(pool, rows.slice(1))).toEqual(['claimed']);
    const { rows: accounts } = await pool.query('SELECT id, version FROM accounts ORDER BY id');
    const states = rows.map(({ event }) => ({
      event,
      version: accounts.find((account) => Number(account.id) === event.accountId)?.version,
    }));
    expect((await loadEventStates(pool, states)).map(({ status }) => status)).toEqual(['new', 'dispatched']);
    expect(await commitResults(pool, rows)).toEqual(['claimed', 'duplicate']);
    expect(await deliveriesOf(harness.database)).toHaveLength(1);
    const { rows: runs } = await pool.query('SELECT account_id FROM runs ORDER BY account_id');
    expect(runs.map(({ account_id }) => Number(account_id))).toEqual([harness.account.id, other.id]);
  } finally {
    await harness.close();
  }
});
