import { createId, type Problem, type PublishedEvent, parseEvent } from '@runhook/contract';
import { createQueueBackend, openEventQueue, openQueueTelemetry, ServerClock } from '@runhook/queue';

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
  /**
   * Called for connection errors between calls, after which the publisher reconnects, and once if its user must not read the clock of
   * the queue's server; without this option that is a warning of the process.
   */
  onError?: (error: Error) => void;
  /**
   * Events carry on the OpenTelemetry trace that is active at the call, for a process that has an SDK set up, and the
   * packages `@opentelemetry/api` and `bullmq-otel`. Off when omitted: then nothing of OpenTelemetry is loaded here.
   */
  traces?: boolean;
}

/**
 * Publishes onto `job-run-events` (queue contract, docs/contract.md#queue): job name = event type, job id = `<eventId>-<accountId>`.
 * `eventId` and `timestamp` are made here where an event has none, by the clock of the queue's server, because the host's clock may be
 * wrong. Calls throw {@link InvalidEventError};
 * `QueueUnavailableError` when the queue did not take the call, which may be repeated with the same ids; and of those
 * `QueueFullError` when it has no room: whoever can, waits before the next one.
 */
export function createEventPublisher(options: EventPublisherOptions): EventPublisher {
  // Reads the clock of the queue, which is opened below.
  const clock: ServerClock = new ServerClock({
    read: async () => {
      const serverTimeMs = await queue.serverTimeMs();
      if (serverTimeMs === null) reportHostClock();
      return serverTimeMs ?? Date.now();
    },
  });
  const reportHostClock = once(() => (options.onError ?? process.emitWarning)(new Error(HOST_CLOCK_WARNING)));
  const queue = openEventQueue(
    createQueueBackend(options.queueUrl, { clock }),
    options.onError ?? (() => undefined),
    options.traces ? openQueueTelemetry : undefined,
  );
  const retentionDays = options.retentionDays ?? 30;

  async function publishMany(published: readonly PublishedEvent[]): Promise<string[]> {
    const unavailable = await measured(clock);
    const nowMs = clock.nowMs();
    const defaults = { eventId: () => createId('event', nowMs), timestampMs: nowMs, nowMs, retentionDays };
    const events = published.map((candidate, index) => {
      const { event, problems } = parseEvent(candidate, defaults);
      if (problems) throw new InvalidEventError(index, problems);
      return event;
    });
    if (unavailable !== null) throw unavailable;
    await queue.add(events);
    return events.map(({ eventId }) => eventId);
  }

  return {
    publish: async (event) => (await publishMany([event]))[0] as string,
    publishMany,
    close: () => queue.close(),
  };
}

const HOST_CLOCK_WARNING =
  "The publisher's user must not read the clock of the queue's server, so ids and times go by the clock of this host; if that is wrong, events are set aside instead of delivered. Give the user the ACL rule +time.";

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

const MEASURED_FOR_MS = 60_000;

/** Measures the clock of the queue's server if that is due. Returns the error of a queue that is away, null otherwise. */
async function measured(clock: ServerClock): Promise<unknown> {
  if (clock.isMeasuredWithin(MEASURED_FOR_MS)) return null;
  try {
    await clock.measure();
    return null;
  } catch (error) {
    return error;
  }
}

/**
 * An id for an event that must be known before it is published, to publish the event again after a fault, say. It has the time of this
 * host's clock: `publish` rejects it if that is more than a day ahead of the queue's server, or behind it by more than the retention.
 */
export function createEventId(): string {
  return createId('event');
}
