// Runs in the same project as receive.ts: publishes to the queue of its argument, and then makes calls that fail.
import {
  createEventId,
  createEventPublisher,
  InvalidEventError,
  type PublishedEvent,
  QueueFullError,
  QueueUnavailableError,
  RUN_STATUS_CODES,
  type RunDetails,
  secondsTimestamp,
} from '@runhook/publisher';

const run: RunDetails = {
  jobId: '123',
  jobName: 'Daily build',
  runId: '12345',
  environmentId: '1234',
  environmentName: 'Production',
  engineVersion: '1.9.2',
  projectName: 'Warehouse',
  projectId: '5678',
  runStatus: 'Running',
  runStatusCode: RUN_STATUS_CODES.Running,
  runStatusMessage: 'None',
  runReason: 'Nightly',
  runStartedAt: secondsTimestamp(new Date()),
};
const event = (): PublishedEvent => ({
  eventId: createEventId(),
  eventType: 'job.run.started',
  accountId: 1,
  data: run,
});

async function outcomeOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof InvalidEventError) return error.problems.map(({ field }) => field);
    if (error instanceof QueueFullError) return 'full';
    if (error instanceof QueueUnavailableError) return 'unavailable';
    return (error as Error).message;
  }
}

const [queueUrl] = process.argv.slice(2);
const told: Record<string, unknown> = {};
if (queueUrl !== undefined) {
  const publisher = createEventPublisher({ queueUrl });
  told.one = await outcomeOf(() => publisher.publish(event()));
  told.many = await outcomeOf(() => publisher.publishMany([event(), event(), event()]));
  // @ts-expect-error an event that completed has its time
  const incomplete: PublishedEvent = { ...event(), eventType: 'job.run.completed' };
  told.invalid = await outcomeOf(() => publisher.publishMany([event(), incomplete]));
  await publisher.close();
}
const away = createEventPublisher({ queueUrl: 'redis://127.0.0.1:1' });
told.away = await outcomeOf(() => away.publish(event()));
told.driver = await outcomeOf(() =>
  createEventPublisher({ queueUrl: 'postgres://127.0.0.1/a' }).publish(event()),
);
process.stdout.write(JSON.stringify(told));
process.exit(0);
