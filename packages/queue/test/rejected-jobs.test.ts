import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, eventJobId, JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import {
  createQueueBackend,
  type EventQueue,
  JobsRejectedError,
  openDeliveryQueue,
  openEventQueue,
} from '@runhook/queue';
import { createTestQueue, exampleEvent, queueBackends } from '@runhook/testing';

const JOB = {
  id: 1,
  account_id: 1,
  name: 'Nightly',
  project_id: 1,
  project_name: 'Analytics',
  environment_id: 1,
  environment_name: 'Production',
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const errorOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);
const rejectedJobIds = async (work: Promise<unknown>) => {
  const error = await errorOf(work);
  expect(error).toBeInstanceOf(JobsRejectedError);
  return (error as JobsRejectedError).rejected.map(({ jobId }) => jobId);
};

describe.each(queueBackends())('jobs whose data the queue rejects, on $name', (backend) => {
  let queueUrl: string;
  let events: EventQueue;
  beforeEach(async () => {
    const testQueue = await createTestQueue(backend);
    closing.push(() => testQueue.drop());
    queueUrl = testQueue.url;
    events = openEventQueue(createQueueBackend(queueUrl), () => undefined);
    closing.push(() => events.close());
  });

  /** JSON cannot encode a bigint, so no server accepts it. */
  const invalidate = (event: JobRunEvent) =>
    ({ ...event, data: { ...event.data, runId: 1n as never } }) as JobRunEvent;
  const createEvents = (count: number): JobRunEvent[] =>
    Array.from({ length: count }, () => ({
      ...exampleEvent('job.run.started', JOB),
      eventId: createId('event'),
    }));

  async function queuedIds(): Promise<string[]> {
    const queue = createQueueBackend(queueUrl).createQueue<{ events?: JobRunEvent[] } & JobRunEvent>(
      JOB_RUN_EVENTS,
    );
    try {
      const jobs = await queue.getJobs(['waiting', 'prioritized']);
      return jobs.flatMap(({ data }) => (data.events ?? [data]).map(({ eventId }) => eventId)).sort();
    } finally {
      await queue.close();
    }
  }

  test('only the invalid one of several events in a shared job is rejected', async () => {
    const valid = createEvents(50);
    const [bad] = valid.splice(25, 1) as [JobRunEvent];
    const mixed = [...valid.slice(0, 25), invalidate(bad), ...valid.slice(25)];
    expect(await rejectedJobIds(events.add(mixed))).toEqual([eventJobId(bad)]);
    expect(await queuedIds()).toEqual(valid.map(({ eventId }) => eventId).sort());
  });

  test('events of the bulk calls after a rejected event are added', async () => {
    const valid = createEvents(520);
    const [bad] = valid.splice(3, 1) as [JobRunEvent];
    expect(await rejectedJobIds(events.add([invalidate(bad), ...valid]))).toEqual([eventJobId(bad)]);
    expect(await queuedIds()).toEqual(valid.map(({ eventId }) => eventId).sort());
  });

  test('only the invalid one of several events in separate jobs is rejected', async () => {
    const valid = createEvents(30);
    const [bad] = valid.splice(7, 1) as [JobRunEvent];
    expect(await rejectedJobIds(events.addEach([...valid, invalidate(bad)]))).toEqual([eventJobId(bad)]);
    expect(await queuedIds()).toEqual(valid.map(({ eventId }) => eventId).sort());
  });

  test('only the invalid delivery is rejected', async () => {
    const deliveries = openDeliveryQueue(createQueueBackend(queueUrl), () => undefined);
    closing.push(() => deliveries.close());
    const delivery = { cycle: 0, accountId: 1, delayMs: 0, attemptsLeft: 1 };
    const valid = Array.from({ length: 150 }, (_, index) => ({ ...delivery, deliveryId: `wdl_${index}` }));
    Object.assign(valid[60] as object, { deliveryId: 'wdl_60', accountId: 1n });
    expect(await rejectedJobIds(deliveries.add(valid))).toEqual(['wdl_60-0']);
    expect(await deliveries.counts()).toMatchObject({ waiting: 149 });
  });

  if (backend.name === 'PostgreSQL')
    test('text that jsonb rejects affects its own event only', async () => {
      const valid = createEvents(30);
      const bad = { ...(valid.pop() as JobRunEvent) };
      bad.data = { ...bad.data, jobName: 'cut \ud83d' } as never;
      expect(await rejectedJobIds(events.add([...valid, bad]))).toEqual([eventJobId(bad)]);
      expect(await queuedIds()).toEqual(valid.map(({ eventId }) => eventId).sort());
    });
});
