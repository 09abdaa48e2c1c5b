import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { batchedEvents, createId, eventJobId, idTimeMs, JOB_RUN_EVENTS } from '@runhook/contract';
import {
  commandStepName,
  createEventId,
  createEventPublisher,
  InvalidEventError,
  QueueUnavailableError,
} from '@runhook/publisher';
import { createQueueBackend, queueBackendName } from '@runhook/queue';
import { createTestQueue, EXAMPLE_JOB, exampleEvent, queueBackends, startTcpProxy } from '@runhook/testing';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe.each(queueBackends())('on $name', (backend) => {
  let queueUrl: string;
  const closers: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    const testQueue = await createTestQueue(backend);
    closers.push(() => testQueue.drop());
    queueUrl = testQueue.url;
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  const openPublisher = (url: string, options: { retentionDays?: number } = {}) => {
    const publisher = createEventPublisher({ queueUrl: url, ...options });
    closers.push(() => publisher.close());
    return publisher;
  };
  const waiting = async () => {
    const queue = createQueueBackend(queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    closers.push(() => queue.close());
    return await queue.getWaiting();
  };

  test('a published event is a job with the event type as its name, an id of event and account, and the complete event as its data', async () => {
    const event = exampleEvent('job.run.errored', EXAMPLE_JOB);
    expect(await openPublisher(queueUrl).publish(event)).toBe(event.eventId);
    const [queued, ...others] = await waiting();
    expect(others).toEqual([]);
    expect(queued).toMatchObject({ name: 'job.run.errored', id: eventJobId(event), data: event });
  });

  test('an id and a timestamp are generated for an event without them', async () => {
    const { eventId: _id, timestamp: _time, ...anonymous } = exampleEvent('job.run.started', EXAMPLE_JOB);
    const eventId = await openPublisher(queueUrl).publish(anonymous as never);
    const [queued] = await waiting();
    expect(eventId).toMatch(/^wev_[0-9A-Za-z]{27}$/);
    expect(queued?.data).toEqual({
      ...anonymous,
      eventId,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/),
    });
  });

  test('an event whose id is queued is not queued a second time', async () => {
    const event = exampleEvent('job.run.started', EXAMPLE_JOB);
    const publisher = openPublisher(queueUrl);
    await publisher.publishMany([event, event]);
    await publisher.publish(event);
    expect(await waiting()).toHaveLength(1);
  });

  test('many events are published as jobs of at most twenty, without duplicates', async () => {
    const events = Array.from({ length: 50 }, () => exampleEvent('job.run.started', EXAMPLE_JOB));
    const publisher = openPublisher(queueUrl);
    await publisher.publishMany([...events, ...events]);
    await publisher.publishMany(events);
    const jobs = (await waiting()).map(({ name, data }) => ({ name, events: batchedEvents(data) ?? [] }));
    expect(jobs.map(({ name }) => name)).toEqual(['job.run.batch', 'job.run.batch', 'job.run.batch']);
    const sizes = jobs.map((one) => one.events.length).sort((a, b) => b - a);
    expect(sizes).toEqual([20, 20, 10]);
    const ids = jobs.flatMap((one) => one.events.map(({ eventId }) => eventId));
    expect(ids.toSorted()).toEqual(events.map(({ eventId }) => eventId).toSorted());
  });

  test('steps of a run are next to their event, with well-formed texts and the end of long logs', async () => {
    const event = exampleEvent('job.run.completed', EXAMPLE_JOB);
    const step = { index: 1, name: commandStepName(['dbt', 'build']), status: 'Success', logs: 'a\0b' };
    const publisher = openPublisher(queueUrl);
    await publisher.publish(event, {
      run_steps: [step, { ...step, index: 2, logs: `${'x'.repeat(1_000_000)}end` }],
    });
    const [queued, ...others] = await waiting();
    expect(others).toEqual([]);
    expect(queued).toMatchObject({
      data: {
        ...event,
        run_steps: [
          { ...step, name: 'Invoke dbt with `dbt build`', logs: 'a\ufffdb' },
          { index: 2, logs: expect.stringMatching(/^\[This log had 1000003 bytes.*\]\nx+end$/) },
        ],
      },
    });
    expect(JSON.stringify(queued?.data).length).toBeLessThan(270_000);
    const other = exampleEvent('job.run.completed', EXAMPLE_JOB);
    await expect(
      publisher.publish(other, { run_steps: [{ ...step, status: 'Fine' }] }),
    ).rejects.toMatchObject({
      code: 'invalid_event',
      problems: [{ field: 'run_steps.0.status' }],
    });
  });

  test('events with long texts do not share a job, because its bytes are limited', async () => {
    const long = () => {
      const event = exampleEvent('job.run.started', EXAMPLE_JOB);
      return { ...event, data: { ...event.data, runReason: '🚀'.repeat(10_000) } } as typeof event;
    };
    await openPublisher(queueUrl).publishMany([long(), long()]);
    expect((await waiting()).map(({ name }) => name)).toEqual(['job.run.started', 'job.run.started']);
  });

  test('texts with characters that JSON must not contain are repaired, and the other events of the call are published', async () => {
    const intact = exampleEvent('job.run.started', EXAMPLE_JOB);
    const data = { ...intact.data, jobName: 'a\0b', runReason: 'cut \ud83d', runStatusMessage: '\ufffe' };
    const cut = { ...exampleEvent('job.run.started', EXAMPLE_JOB), data } as typeof intact;
    await openPublisher(queueUrl).publishMany([intact, cut]);
    const [job] = await waiting();
    const events = batchedEvents(job?.data) ?? [];
    expect(events.map(({ eventId }) => eventId)).toEqual([intact.eventId, cut.eventId]);
    expect(events[1]?.data).toMatchObject({
      jobName: 'a\ufffdb',
      runReason: 'cut \ufffd',
      runStatusMessage: '\ufffd',
    });
  });

  test('events of maximum length are published, whatever their total size', async () => {
    const text = '🚀'.repeat(65_536);
    const longest = () => {
      const event = exampleEvent('job.run.started', EXAMPLE_JOB);
      return { ...event, data: { ...event.data, runReason: text, runStatusMessage: text } } as typeof event;
    };
    await openPublisher(queueUrl).publishMany(Array.from({ length: 17 }, longest));
    expect(await waiting()).toHaveLength(17);
  });

  test('an invalid event is rejected with its problems, and no event of its call is published', async () => {
    const valid = exampleEvent('job.run.started', EXAMPLE_JOB);
    const invalid = { ...valid, data: { ...valid.data, jobId: 7 } };
    const error = await openPublisher(queueUrl)
      .publishMany([valid, invalid as never])
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidEventError);
    expect(error).toMatchObject({
      code: 'invalid_event',
      problems: [{ field: 'data.jobId', message: 'data.jobId must be a string' }],
    });
    expect(await waiting()).toEqual([]);
  });

  test('an id is accepted within the configured retention, and rejected if it is older', async () => {
    const event = exampleEvent('job.run.started', EXAMPLE_JOB);
    const publisher = openPublisher(queueUrl, { retentionDays: 60 });
    const eventId = createId('event', Date.now() - 40 * DAY_MS);
    expect(await publisher.publish({ ...event, eventId })).toBe(eventId);
    const expiredId = { ...event, eventId: createId('event', Date.now() - 70 * DAY_MS) };
    await expect(publisher.publish(expiredId)).rejects.toMatchObject({
      problems: [{ field: 'eventId', message: 'eventId is older than the 60 days of the log' }],
    });
  });

  describe.each([
    ['two days ahead', 2 * DAY_MS, 'eventId carries a time more than a day ahead'],
    ['forty days behind', -40 * DAY_MS, 'eventId is older than the 30 days of the log'],
  ])('on a host whose clock is %s', (_name, aheadMs, problem) => {
    const { now } = Date;
    beforeEach(() => {
      jest.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs);
    });
    afterEach(() => {
      jest.restoreAllMocks();
    });

    test("generated ids, timestamps and jobs have the time of the queue's server", async () => {
      const { eventId: _id, timestamp: _time, ...anonymous } = exampleEvent('job.run.started', EXAMPLE_JOB);
      const eventId = await openPublisher(queueUrl).publish(anonymous as never);
      const [queued] = (await waiting()) as unknown as [{ timestamp: number; data: { timestamp: string } }];
      for (const timeMs of [idTimeMs('event', eventId), Date.parse(queued.data.timestamp), queued.timestamp])
        expect(Math.abs((timeMs ?? 0) - now())).toBeLessThan(HOUR_MS);
    });

    test("an id of createEventId() is rejected, because its time is that of the host's clock", async () => {
      const event = { ...exampleEvent('job.run.started', EXAMPLE_JOB), eventId: createEventId() };
      await expect(openPublisher(queueUrl).publish(event)).rejects.toMatchObject({
        code: 'invalid_event',
        problems: [{ field: 'eventId', message: problem }],
      });
      expect(await waiting()).toEqual([]);
    });
  });

  test('a call throws QueueUnavailableError while the queue is unavailable, and the next call succeeds once it is available', async () => {
    const proxy = await startTcpProxy(queueUrl);
    closers.push(() => proxy.close());
    await proxy.cut();
    const publisher = openPublisher(proxy.url);
    const event = exampleEvent('job.run.started', EXAMPLE_JOB);
    await expect(publisher.publish(event)).rejects.toBeInstanceOf(QueueUnavailableError);
    await proxy.restore();
    await publisher.publish(event);
    await proxy.cut();
    await expect(publisher.publish(exampleEvent('job.run.started', EXAMPLE_JOB))).rejects.toBeInstanceOf(
      QueueUnavailableError,
    );
    await proxy.restore();
    await publisher.publish(exampleEvent('job.run.errored', EXAMPLE_JOB));
    expect((await waiting()).length).toBeGreaterThanOrEqual(2);
  });
});

test('the scheme of the queue URL selects the backend, and unknown schemes are rejected', () => {
  expect(queueBackendName('redis://a')).toBe('Redis');
  expect(queueBackendName('rediss://a')).toBe('Redis');
  expect(queueBackendName('postgres://a')).toBe('PostgreSQL');
  expect(queueBackendName('postgresql://a')).toBe('PostgreSQL');
  expect(() => queueBackendName('amqp://secret@a')).toThrow(/^the queue URL must start with [^@]*$/);
});
