import { createId, type Problem, type PublishedEvent, parseEvent } from '@runhook/contract';
import { createQueueBackend, openEventQueue, openQueueTelemetry } from '@runhook/queue';

export {
  type EventType,
  type Problem,
  type PublishedEvent,
  RUN_STATUS_CODES,
  type RunDetails,
  type RunStatus,
  secondsTimestamp,
} from '@runhook/contract';
export { QueueFullError, QueueUnavailableError } from '@runhook/queue';

/** An event that does not fit the queue contract. Nothing of the call was published. */
export class InvalidEventError extends Error {
  readonly code = 'invalid_event';
  /** What is wrong, each with the path of its field. */
  readonly problems: Problem[];

  constructor(index: number, problems: Problem[]) {
    super(`event ${index} is invalid: ${problems.map(({ message }) => message).join('; ')}`);
    this.problems = problems;
  }
}

/** For job runners that publish straight onto the queue. */
export interface EventPublisher {
  /** Resolves with the `eventId` once the queue holds the event. Publishing an id again delivers nothing twice. */
  publish(event: PublishedEvent): Promise<string>;
  /** As `publish`, for many in one call; all are checked before the first is sent. */
  publishMany(events: readonly PublishedEvent[]): Promise<string[]>;
  close(): Promise<void>;
}

export interface EventPublisherOptions {
  /**
   * The service's own `QUEUE_URL`: Redis in any of its forms, or PostgreSQL, for which the package `pg` has to be
   * installed.
   */
  queueUrl: string;
  /** `LOG_RETENTION_DAYS` of the service; ids older than that are refused. 30 when omitted. */
  retentionDays?: number;
  /** Told of connection trouble between calls; reconnecting goes on by itself. */
  onError?: (error: Error) => void;
  /**
   * Events carry on the OpenTelemetry trace that is active at the call, for a process that has an SDK set up, and the
   * packages `@opentelemetry/api` and `bullmq-otel`. Off when omitted: then nothing of OpenTelemetry is loaded here.
   */
  traces?: boolean;
}

/**
 * Publishes onto `job-run-events` (queue contract, docs/contract.md#queue): job name = event type, job id = `<eventId>-<accountId>`.
 * `eventId` and `timestamp` are made here where an event has none. Calls throw {@link InvalidEventError};
 * `QueueUnavailableError` when the queue did not take the call, which may be repeated with the same ids; and of those
 * `QueueFullError` when it has no room: whoever can, waits before the next one.
 */
export function createEventPublisher(options: EventPublisherOptions): EventPublisher {
  const queue = openEventQueue(
    createQueueBackend(options.queueUrl),
    options.onError ?? (() => undefined),
    options.traces ? openQueueTelemetry : undefined,
  );
  const retentionDays = options.retentionDays ?? 30;

  async function publishMany(published: readonly PublishedEvent[]): Promise<string[]> {
    const events = published.map((candidate, index) => {
      const nowMs = Date.now();
      const defaults = { eventId: () => createId('event', nowMs), timestampMs: nowMs, nowMs, retentionDays };
      const { event, problems } = parseEvent(candidate, defaults);
      if (problems) throw new InvalidEventError(index, problems);
      return event;
    });
    await queue.add(events);
    return events.map(({ eventId }) => eventId);
  }

  return {
    publish: async (event) => (await publishMany([event]))[0] as string,
    publishMany,
    close: () => queue.close(),
  };
}

/** An id for an event, for whoever must know it before it is published: to publish it again after a fault, say. */
export function createEventId(): string {
  return createId('event');
}
