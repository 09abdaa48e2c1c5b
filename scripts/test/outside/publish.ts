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

async function describeOutcome(work: () => Promise<unknown>): Promise<unknown> {
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
const messages: Record<string, unknown> = {};
if (queueUrl !== undefined) {
  const publisher = createEventPublisher({ queueUrl });
  messages.one = await describeOutcome(() => publisher.publish(event()));
  messages.many = await describeOutcome(() => publisher.publishMany([event(), event(), event()]));
  // @ts-expect-error an event that completed has its time
  const incomplete: PublishedEvent = { ...event(), eventType: 'job.run.completed' };
  messages.invalid = await describeOutcome(() => publisher.publishMany([event(), incomplete]));
  await publisher.close();
}
const unreachable = createEventPublisher({ queueUrl: 'redis://127.0.0.1:1' });
messages.away = await describeOutcome(() => unreachable.publish(event()));
messages.driver = await describeOutcome(() =>
  createEventPublisher({ queueUrl: 'postgres://127.0.0.1/a' }).publish(event()),
);
process.stdout.write(JSON.stringify(messages));
process.exit(0);
