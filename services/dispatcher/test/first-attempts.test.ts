import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import { listQuarantined, storedEventData } from '@runhook/database';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedAccount, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf, insertUndispatched } from './log-rows.ts';

/** Most first attempts begin before the commit (docs/adr/0043-attempt-before-commit.md). */
describe.each(oneQueueBackend())('the first attempts of an event, with the queue on $name', (backend) => {
  let harness: Harness;
  /** Releases the requests to a path that begins with /held. */
  let release: () => void;
  beforeEach(async () => {
    harness = await openHarness(backend);
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    harness.receiver.respondWith(async ({ path }) => {
      if (path.startsWith('/held')) await released;
      return { status: path.startsWith('/fails') ? 500 : 200 };
    });
  });
  afterEach(async () => {
    release();
    await harness.close();
  });

  const event = () => exampleEvent('job.run.started', harness.account.jobs[0] as never);

  async function addJob(name: string, data: object, jobId: string, timestamp = Date.now()): Promise<void> {
    const queue = createQueueBackend(harness.queueUrl).createQueue<object>(JOB_RUN_EVENTS);
    await queue.add(name, data, { jobId, timestamp });
    await queue.close();
  }

  const storedIn = async (table: string) =>
    Number((await harness.database.pool.query(`SELECT count(*) FROM ${table}`)).rows[0].count);

  test('are recorded in one row each if they succeed at once, and the event is dispatched', async () => {
    await harness.subscribe('/one');
    await harness.subscribe('/two');
    await harness.startDispatcher();
    // An attempt of half a second, as on a busy machine, is committed before it ends; then another event is used.
    await eventually(async () => {
      const published = event();
      await harness.publisher.publish(published);
      const rows = await eventually(async () => {
        const all = await deliveriesOf(harness.database);
        const rows = all.filter(({ event_id }) => event_id === published.eventId);
        expect(rows.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
        return rows;
      });
      const ids = rows.map(({ id }) => id);
      const { pool } = harness.database;
      const stored = await pool.query('SELECT FROM attempts WHERE delivery_id = ANY ($1)', [ids]);
      expect(stored.rowCount).toBe(0);
      expect(await storedIn('undispatched_events')).toBe(0);
      for (const id of ids) expect(await attemptsOf(harness.database, id)).toHaveLength(1);
      const { rows: times } = await pool.query<{ ordered: boolean }>(
        `SELECT created_at <= completed_at AND completed_at - created_at < interval '20 s' AS ordered
         FROM deliveries WHERE id = ANY ($1)`,
        [ids],
      );
      expect(times).toEqual([{ ordered: true }, { ordered: true }]);
    });
  });

  test('that have ended are recorded while another one hangs, which is recorded once it ends', async () => {
    const names = new Map<string, string>();
    for (const path of ['/at-once', '/held', '/fails']) names.set((await harness.subscribe(path)).id, path);
    await harness.startDispatcher();
    await harness.publisher.publish(event());
    const states = async () => {
      const { rows } = await harness.database.pool.query(
        'SELECT subscription_id, status, attempt_count FROM deliveries',
      );
      return Object.fromEntries(
        rows.map((row) => [names.get(row.subscription_id), [row.status, row.attempt_count]]),
      );
    };
    await eventually(async () => {
      const { '/fails': failing, ...others } = await states();
      expect(others).toEqual({ '/at-once': ['delivered', 1], '/held': ['pending', 0] });
      expect(failing?.[1]).toBeGreaterThan(0);
    });
    release();
    await eventually(async () => expect((await states())['/held']).toEqual(['delivered', 1]));
    const requestsToSlow = harness.receiver.requests.filter(({ path }) => path === '/held');
    expect(requestsToSlow).toHaveLength(1);
  });

  test('occupy no slot for events in flight once their event is committed', async () => {
    await harness.subscribe('/held');
    await harness.startDispatcher({ deliveryConcurrency: 1, deliveryTimeoutMs: 60_000 });
    // One job with two events, of which the second waits for the only slot.
    await addJob('job.run.batch', { events: [event(), event()] }, 'batch_of_a_publisher');
    await eventually(async () => expect(await storedIn('deliveries')).toBe(2));
    expect(harness.receiver.requests.length).toBeGreaterThan(0);
  });

  test('of an account are sent while another account has 12 webhooks with endpoints that hang', async () => {
    const WEBHOOKS = 12;
    const EVENTS = 20;
    const other = await seedAccount(harness.database);
    await seedSubscription(harness.database, {
      accountId: other.id,
      clientUrl: `${harness.receiver.url}/other`,
    });
    for (let index = 0; index < WEBHOOKS; index += 1) await harness.subscribe(`/held${index}`);
    let isSuspended = false;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    harness.receiver.respondWith(async ({ path }) => {
      if (isSuspended && path.startsWith('/held')) await released;
      return { status: 200 };
    });
    await harness.startDispatcher({ deliveryConcurrency: 2 * WEBHOOKS, deliveryTimeoutMs: 60_000 });
    const otherEvents = (count: number) =>
      Array.from({ length: count }, () => exampleEvent('job.run.started', other.jobs[0] as never));
    const delivered = async (accountId: number) => {
      const sql = `SELECT FROM deliveries WHERE account_id = $1 AND status = 'delivered'`;
      return (await harness.database.pool.query(sql, [accountId])).rowCount;
    };
    // Only lanes that have succeeded get more than 16 slots.
    await harness.publisher.publishMany([event(), ...otherEvents(1)]);
    await eventually(async () => expect(await delivered(harness.account.id)).toBe(WEBHOOKS));
    isSuspended = true;
    await harness.publisher.publishMany(Array.from({ length: EVENTS }, event));
    await eventually(async () => expect(await storedIn('deliveries')).toBe((EVENTS + 1) * WEBHOOKS + 1));
    await harness.publisher.publishMany(otherEvents(EVENTS));
    await eventually(async () => expect(await delivered(other.id)).toBe(EVENTS + 1));
    expect(await delivered(harness.account.id)).toBe(WEBHOOKS);
  });

  test('are made once for an event that is in two concurrent jobs', async () => {
    await harness.subscribe('/held');
    await harness.startDispatcher();
    const one = event();
    const other = event();
    await addJob(one.eventType, one, one.eventId);
    await addJob('job.run.batch', { events: [one, other] }, 'batch_of_a_publisher');
    await harness.receiver.waitFor(2);
    release();
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
    });
    // A second request of the first event would have been sent before the other event's job ended.
    await eventually(async () => {
      const queue = createQueueBackend(harness.queueUrl).createQueue<object>(JOB_RUN_EVENTS);
      const counts = await queue.getJobCounts('active', 'waiting');
      await queue.close();
      expect(counts).toEqual({ active: 0, waiting: 0 });
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('send the recorded body if the message has other data under the same id, and the message is set aside with a new id', async () => {
    await harness.subscribe('/one');
    const published = event();
    const recorded = { ...published, data: { ...published.data, jobName: 'as recorded' } } as JobRunEvent;
    await insertUndispatched(harness.database, recorded);
    await addJob(published.eventType, published, published.eventId);
    const { port } = await harness.startDispatcher();
    await eventually(async () => {
      const [delivery] = await deliveriesOf(harness.database);
      expect(delivery?.status).toBe('delivered');
    });
    expect(harness.receiver.requests.map(({ body }) => JSON.parse(String(body)).data.jobName)).toEqual([
      'as recorded',
    ]);
    const setAside = () => listQuarantined(harness.database.pool, { limit: 10 });
    await eventually(async () => expect(await setAside()).toHaveLength(1));
    expect(await setAside()).toMatchObject([
      {
        accountId: published.accountId,
        kind: 'conflict',
        key: expect.stringMatching(`^${published.eventId}-`),
        reason: 'eventId names an event that is on record with other data',
        message: { ...published, eventId: expect.not.stringMatching(published.eventId) },
      },
    ]);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/^runhook_events_total\{[^}]*result="conflict"[^}]*\} 1$/m);
    const { rows } = await harness.database.pool.query('SELECT data FROM events');
    expect(rows).toEqual([{ data: JSON.parse(storedEventData(recorded)) }]);
  });

  test('send the timestamp on record when the message has another one', async () => {
    await harness.subscribe('/one');
    const published = event();
    const timestamp = '2026-01-31T19:28:08.000000001Z';
    await insertUndispatched(harness.database, { ...published, timestamp });
    await addJob(published.eventType, published, published.eventId);
    await harness.startDispatcher();
    const [request] = await harness.receiver.waitFor(1);
    expect(JSON.parse(String(request?.body))).toMatchObject({ timestamp });
  });

  test('are not made for an event without subscriptions, which is recorded as dispatched', async () => {
    await harness.startDispatcher();
    const published = { ...event(), eventId: createId('event') };
    await harness.publisher.publish(published);
    await eventually(async () => expect(await storedIn('events')).toBe(1));
    expect(await storedIn('undispatched_events')).toBe(0);
    expect(harness.receiver.requests).toHaveLength(0);
  });
});
