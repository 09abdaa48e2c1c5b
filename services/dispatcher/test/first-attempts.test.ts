import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import { storedEventData } from '@runhook/database';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf, insertOpenEvent } from './log-rows.ts';

/** Attempted, then committed (docs/adr/0043-attempted-then-committed.md). */
describe.each(queueBackends())('the first attempts of an event, with the queue on $name', (backend) => {
  let harness: Harness;
  /** Lets the requests to a path go that begins with /held. */
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
  const subscribe = (path: string) =>
    seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: `${harness.receiver.url}${path}`,
    });

  async function addJob(name: string, data: object, jobId: string, timestamp = Date.now()): Promise<void> {
    const queue = createQueueBackend(harness.queueUrl).createQueue<object>(JOB_RUN_EVENTS);
    await queue.add(name, data, { jobId, timestamp });
    await queue.close();
  }

  const storedIn = async (table: string) =>
    Number((await harness.database.pool.query(`SELECT count(*) FROM ${table}`)).rows[0].count);

  test('that succeed at once are one row each, and nothing is left open', async () => {
    await subscribe('/one');
    await subscribe('/two');
    await harness.startDispatcher();
    await harness.publisher.publish(event());
    const rows = await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status }) => status)).toEqual(['delivered', 'delivered']);
      return rows;
    });
    expect(await storedIn('attempts')).toBe(0);
    expect(await storedIn('open_events')).toBe(0);
    for (const { id } of rows) expect(await attemptsOf(harness.database, id)).toHaveLength(1);
    const { rows: times } = await harness.database.pool.query<{ ordered: boolean }>(
      `SELECT created_at <= completed_at AND completed_at - created_at < interval '20 s' AS ordered FROM deliveries`,
    );
    expect(times).toEqual([{ ordered: true }, { ordered: true }]);
  });

  test('that take long, fail or have siblings are in the log before the last of them ends', async () => {
    const names = new Map<string, string>();
    for (const path of ['/at-once', '/held', '/fails']) names.set((await subscribe(path)).id, path);
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
    const held = harness.receiver.requests.filter(({ path }) => path === '/held');
    expect(held).toHaveLength(1);
  });

  test('are made once of an event that two jobs bring at the same time', async () => {
    await subscribe('/held');
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
    // A second request of the one would have gone before the other's job was done.
    await eventually(async () => {
      const queue = createQueueBackend(harness.queueUrl).createQueue<object>(JOB_RUN_EVENTS);
      const counts = await queue.getJobCounts('active', 'waiting');
      await queue.close();
      expect(counts).toEqual({ active: 0, waiting: 0 });
    });
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('of an open event send what its job tells, and that is what the log has', async () => {
    await subscribe('/one');
    const told = event();
    const stored = { ...told, data: { ...told.data, jobName: 'as management had it' } } as JobRunEvent;
    await insertOpenEvent(harness.database, stored);
    await addJob(told.eventType, told, told.eventId);
    await harness.startDispatcher();
    await harness.receiver.waitFor(1);
    await eventually(async () => expect(await storedIn('open_events')).toBe(0));
    const { rows } = await harness.database.pool.query('SELECT data FROM events');
    expect(rows).toEqual([{ data: JSON.parse(storedEventData(told)) }]);
  });

  test('are made without a question of what was committed just now, with its account as it is known', async () => {
    const { id } = await subscribe('/one');
    const { port } = await harness.startDispatcher();
    const accountVersion = async () => {
      const { rows } = await harness.database.pool.query('SELECT version FROM accounts');
      return rows[0].version as string;
    };
    const asked = async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return Number(/runhook_batch_size_count\{[^}]*batch="look"\} (\d+)/.exec(metrics)?.[1] ?? 0);
    };
    /** How often the dispatcher asked for it. */
    const report = async (version: string, ageMs = 0) => {
      const before = await asked();
      const committed = { ...event(), eventId: createId('event') };
      await insertOpenEvent(harness.database, committed);
      const data = { ...committed, accountVersion: version };
      await addJob(committed.eventType, data, committed.eventId, Date.now() - ageMs);
      await eventually(async () => expect(await storedIn('open_events')).toBe(0));
      return (await asked()) - before;
    };
    // A busy machine may have it too late.
    await eventually(async () => expect(await report(await accountVersion())).toBe(0));
    expect(await report(await accountVersion(), 1_000)).toBe(1);
    expect(await report('0')).toBe(1);
    const sent = harness.receiver.requests.length;
    expect((await deliveriesOf(harness.database)).map(({ status }) => status)).toEqual(
      Array(sent).fill('delivered'),
    );

    // What the dispatcher remembers is of before, and the event of after.
    await harness.database.pool.query('UPDATE subscriptions SET active = false WHERE id = $1', [id]);
    await report(await accountVersion());
    expect(harness.receiver.requests).toHaveLength(sent);
  });

  test('are not made of an event that nobody subscribes to, which is claimed all the same', async () => {
    await harness.startDispatcher();
    const published = { ...event(), eventId: createId('event') };
    await harness.publisher.publish(published);
    await eventually(async () => expect(await storedIn('events')).toBe(1));
    expect(await storedIn('open_events')).toBe(0);
    expect(harness.receiver.requests).toHaveLength(0);
  });
});
