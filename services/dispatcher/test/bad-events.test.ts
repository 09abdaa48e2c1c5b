import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, eventJobId, JOB_RUN_EVENTS, type JobRunEvent, wellFormedText } from '@runhook/contract';
import { listQuarantined } from '@runhook/database';
import { createQueueBackend, openEventQueue } from '@runhook/queue';
import { eventually, exampleEvent, oneQueueBackend, seedSubscription } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

describe.each(oneQueueBackend())('on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  async function storedEvents(): Promise<number> {
    const { rows } = await harness.database.pool.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM events',
    );
    return rows[0]?.count as number;
  }

  test('a malformed message is retained as a failed job and counted, and the next one is delivered', async () => {
    const job = harness.account.jobs[0] as (typeof harness.account.jobs)[number];
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const queue = createQueueBackend(harness.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    const valid = exampleEvent('job.run.started', job);
    const { eventId: _none, ...anonymous } = exampleEvent('job.run.errored', job);
    await queue.add('nonsense', 'not an event');
    await queue.add('job.run.started', { ...valid, data: { ...valid.data, runId: 7 } });
    await queue.add('job.run.started', { ...exampleEvent('job.run.started', job), accountId: 999_999 });
    await queue.add('job.run.errored', anonymous);
    await queue.add('job.run.started', valid);

    const { port } = await harness.startDispatcher();
    await harness.receiver.waitFor(2);
    await eventually(async () => {
      const failed = await queue.getFailed();
      expect(failed.map(({ failedReason }) => failedReason).sort()).toEqual([
        'accountId is not an account',
        'data.runId must be a string',
        'event must be of type object',
      ]);
    });
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/runhook_events_total\{[^}]*result="malformed"[^}]*\} 3/);
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([
        { status: 'delivered' },
        { status: 'delivered' },
      ]);
    });
    await queue.close();
  });

  test('a malformed event in a shared job gets a separate failed job, and the other events are delivered', async () => {
    const job = harness.account.jobs[0] as (typeof harness.account.jobs)[number];
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const good = Array.from({ length: 30 }, () => exampleEvent('job.run.started', job));
    const bad = { ...exampleEvent('job.run.started', job), accountId: 999_999 };
    await harness.publisher.publishMany([...good.slice(0, 7), bad, ...good.slice(7)]);
    const queue = createQueueBackend(harness.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    expect(await queue.getJobCountByTypes('waiting')).toBe(2);
    const { port } = await harness.startDispatcher();
    await eventually(async () => {
      const [only, ...others] = await queue.getFailed();
      expect(others).toEqual([]);
      expect(only).toMatchObject({ id: eventJobId(bad), failedReason: 'accountId is not an account' });
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered').length).toBe(30);
    });
    expect(harness.receiver.requests).toHaveLength(30);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/^runhook_events_total\{result="malformed".*\} 1$/m);
    await queue.close();
  });

  test('an event whose id has a time outside of the log is set aside with its complete message and a new id, under which it can be recorded', async () => {
    const job = harness.account.jobs[0] as (typeof harness.account.jobs)[number];
    const queue = createQueueBackend(harness.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    const event = exampleEvent('job.run.started', job);
    const at = (days: number) => createId('event', Date.now() + days * 86_400_000);
    const ahead = at(2);
    const long = { ...event, data: { ...event.data, runReason: '🚀'.repeat(60_000) } };
    await queue.add('job.run.started', { ...event, eventId: ahead });
    await queue.add('job.run.started', { ...long, eventId: ahead });
    await queue.add('job.run.started', { ...event, eventId: at(-40) });
    const { eventId: _none, ...anonymous } = event;
    await queue.add('job.run.started', anonymous, { timestamp: Date.now() + 2 * 86_400_000 });
    const { port } = await harness.startDispatcher();
    const setAside = () => listQuarantined(harness.database.pool, { limit: 10 });
    await eventually(async () => expect(await setAside()).toHaveLength(4));
    const rows = await setAside();
    expect(rows.map(({ kind, reason }) => `${kind}: ${reason}`).sort()).toEqual([
      'out_of_range: eventId carries a time more than a day ahead',
      'out_of_range: eventId carries a time more than a day ahead',
      'out_of_range: eventId carries a time more than a day ahead',
      'out_of_range: eventId is older than the 30 days of the log',
    ]);
    expect(rows.filter(({ key }) => key.startsWith(`${ahead}-`)).map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        { ...event, eventId: expect.any(String) },
        { ...long, eventId: expect.any(String) },
      ]),
    );
    expect(await queue.getFailed()).toEqual([]);
    const other = openEventQueue(createQueueBackend(harness.queueUrl), () => undefined);
    await other.addEach(rows.map(({ message }) => message as JobRunEvent));
    await other.close();
    await eventually(async () => expect(await storedEvents()).toBe(4));
    expect(await setAside()).toHaveLength(4);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/^runhook_events_total\{result="out_of_range".*\} 4$/m);
    expect(metrics).not.toMatch(/^runhook_events_total\{result="malformed".*\} [1-9]/m);
    await queue.close();
  });

  test('only the first 16,384 characters of a malformed message of 2 MB are retained', async () => {
    const job = harness.account.jobs[0] as (typeof harness.account.jobs)[number];
    const event = { ...exampleEvent('job.run.started', job), timestamp: '0000-01-01T00:00:00Z' };
    const queue = createQueueBackend(harness.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    // A cut after 16,384 UTF-16 units would divide a surrogate pair in one of the two messages.
    const junk = (start: string) => start + '🚀'.repeat(500_000);
    await queue.add('job.run.started', { ...event, junk: junk('') });
    await queue.add('job.run.started', { ...event, junk: junk('x') });
    await harness.startDispatcher();
    const failed = await eventually(async () => {
      const jobs = await queue.getFailed();
      expect(jobs).toHaveLength(2);
      return jobs;
    });
    for (const { failedReason, data } of failed) {
      expect(failedReason).toBe('timestamp must be an RFC 3339 UTC time');
      const stored = data as { characters: number; beginning: string };
      expect(stored.characters).toBeGreaterThan(500_000);
      expect([...stored.beginning]).toHaveLength(16_384);
      expect(wellFormedText(stored.beginning)).toBe(stored.beginning);
      expect(stored.beginning).toContain(job.name);
    }
    await queue.close();
  });
});
