import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { JobRunEvent } from '@runhook/contract';
import { exampleEvent } from '@runhook/testing';
import { type Harness, openHarness } from '../harness.ts';
import { commitResults } from '../log-rows.ts';

let harness: Harness;
beforeEach(async () => {
  harness = await openHarness({ name: 'PostgreSQL' });
});
afterEach(() => harness.close());

const event = (eventType: JobRunEvent['eventType'], data: object = {}) => {
  const example = exampleEvent(eventType, harness.account.jobs[0] as never);
  return { ...example, data: { ...example.data, ...data } } as JobRunEvent;
};
const commit = (...events: JobRunEvent[]) =>
  commitResults(
    harness.database.pool,
    events.map((one) => ({ event: one, version: null, deliveries: [] })),
  );
const runs = async () =>
  (await harness.database.prisma.run.findMany()).map((run) => ({ ...run, createdAt: undefined }));

test('events that are published directly onto the queue record their run, step by step', async () => {
  await commit(event('job.run.started'));
  expect(await runs()).toMatchObject([
    {
      id: 7_001n,
      status: 'Running',
      reason: 'Started by a test',
      statusMessage: null,
      finishedAt: null,
      erroredAt: null,
    },
  ]);
  await commit(event('job.run.errored', { runStatusMessage: 'No such table' }));
  expect(await runs()).toMatchObject([
    {
      status: 'Errored',
      statusMessage: 'No such table',
      erroredAt: new Date('2026-01-31T19:31:19Z'),
      finishedAt: null,
    },
  ]);
  await commit(event('job.run.completed', { runStatus: 'Errored', runStatusCode: 20 }));
  expect(await runs()).toMatchObject([
    {
      status: 'Errored',
      finishedAt: new Date('2026-01-31T19:31:20Z'),
      artifactsIngestedAt: expect.any(Date),
    },
  ]);
});

test('the run is the same whether its events come in one batch or several, in any order', async () => {
  const events = [event('job.run.started'), event('job.run.completed')] as const;
  await commit(...events);
  const ordered = await runs();
  await harness.database.prisma.run.deleteMany();
  await harness.database.prisma.event.deleteMany();
  await commit(events[1]);
  await commit(events[0]);
  expect(await runs()).toEqual(ordered);
  expect(ordered).toMatchObject([{ status: 'Success' }]);
});

test('a run of another job under the same id is not overwritten', async () => {
  await commit(event('job.run.started'));
  const other = exampleEvent('job.run.errored', harness.account.jobs[1] as never);
  await commit(other);
  expect(await runs()).toMatchObject([{ status: 'Running', jobName: 'Nightly build' }]);
});
