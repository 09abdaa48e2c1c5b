import { eventJobId, JOB_RUN_EVENTS } from '@runhook/contract';
import { ENQUEUE_WINDOW_MS, type EventQueue, type IdentifiedEvent, JobsRejectedError } from '@runhook/queue';
import { approximateBytes, type Traces, withJitter } from '@runhook/runtime';

/** Maximum number of events in one bulk call of the queue. */
const BATCH_SIZE = 500;
/** Maximum memory of waiting events, by {@link approximateBytes}. Further ones are left to the reconciler. */
const QUEUED_BYTES_MAX = 64 * 1_024 * 1_024;
/**
 * Age at which an event is sent in a separate job: the reconciler may soon add it under the same job id, and the queue
 * then has it once. In a shared job it could be queued twice: the reconciler judges those by time only.
 */
const LATE_MS = ENQUEUE_WINDOW_MS / 2;
const OUTAGE_WAIT_MS = 100;
const OUTAGE_WAIT_MAX_MS = 5_000;

/** An event that is committed, with the trace of the call that caused it. */
export interface CommittedEvent {
  event: IdentifiedEvent;
  traceContext: string | null;
}

/** An event that the queue rejects, with the error. */
export interface RejectedEvent {
  event: IdentifiedEvent;
  error: unknown;
}

interface QueuedEvent extends CommittedEvent {
  bytes: number;
  addedAtMs: number;
}

/** Events of one call of the queue; a retry sends the same batch. */
interface Batch {
  events: readonly CommittedEvent[];
  /** Whether each event gets its own job. */
  isLate: boolean;
}

export interface RelayOptions {
  events: Pick<EventQueue, 'add' | 'addEach'>;
  logger: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
  /** Bytes of events that may wait here; 64 MiB when omitted. */
  queuedBytesMax?: number;
  /** Null or omitted unless traces are exported. */
  traces?: Traces | null;
  /** Called with events that the queue rejects for their data. */
  quarantine: (rejected: readonly RejectedEvent[]) => Promise<void>;
  /** Called with the number of events that the queue accepted or rejected, or that were left to the reconciler. */
  onRelayed?: (result: 'sent' | 'left_to_reconciler' | 'quarantined', count: number) => void;
  /** Monotonic clock in milliseconds. */
  nowMs?: () => number;
}

/**
 * Moves the events that this process committed from memory to the queue, in order and in batches. It retries while the
 * queue is unavailable. If the process dies, the reconciler of the dispatchers finds the events by their rows in
 * `undispatched_events`. The queue may have accepted a call that failed, so a retry sends exactly the same batch: the
 * same events make the same jobs. In two jobs, two dispatchers could send an event at the same time.
 */
export class Relay {
  readonly #options: RelayOptions;
  readonly #nowMs: () => number;
  #queuedEvents: QueuedEvent[] = [];
  #queuedBytes = 0;
  #running: Promise<void> | null = null;
  #isStopping = false;
  #wake: (() => void) | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Never throws or waits. */
  add(events: readonly CommittedEvent[]): void {
    const { queuedBytesMax = QUEUED_BYTES_MAX, onRelayed } = this.#options;
    const addedAtMs = this.#nowMs();
    let leftCount = 0;
    for (const committed of events) {
      const bytes = approximateBytes(committed.event);
      if (this.#queuedBytes + bytes > queuedBytesMax) leftCount += 1;
      else {
        this.#queuedEvents.push({ ...committed, bytes, addedAtMs });
        this.#queuedBytes += bytes;
      }
    }
    if (leftCount > 0) onRelayed?.('left_to_reconciler', leftCount);
    if (this.#queuedEvents.length > 0) this.#running ??= this.#run();
  }

  /** Number of waiting events, and age of the oldest one. */
  get backlog(): { events: number; oldestSeconds: number } {
    const [first] = this.#queuedEvents;
    const oldestSeconds = first === undefined ? 0 : (this.#nowMs() - first.addedAtMs) / 1_000;
    return { events: this.#queuedEvents.length, oldestSeconds };
  }

  /** Resolves once the queue has accepted all events, or a call has failed. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { logger, onRelayed } = this.#options;
    let failures = 0;
    let batch: Batch = { events: [], isLate: false };
    while (this.#queuedEvents.length > 0) {
      if (failures === 0) batch = this.#nextBatch();
      try {
        const rejectedCount = await this.#sendOrQuarantine(batch);
        this.#remove(batch.events.length);
        onRelayed?.('sent', batch.events.length - rejectedCount);
        if (rejectedCount > 0) onRelayed?.('quarantined', rejectedCount);
        if (failures > 0) logger.info({ failures }, 'adding events to the queue succeeds again');
        failures = 0;
      } catch (error) {
        if (failures === 0) logger.error({ err: error }, 'events not added to the queue, will retry');
        if (this.#isStopping) break;
        await this.#sleep(withJitter(Math.min(OUTAGE_WAIT_MS * 2 ** failures++, OUTAGE_WAIT_MAX_MS)));
      }
    }
    this.#running = null;
    if (this.#queuedEvents.length === 0) return;
    logger.warn({ events: this.#queuedEvents.length }, 'events left to the reconciler');
    onRelayed?.('left_to_reconciler', this.#queuedEvents.length);
    this.#remove(this.#queuedEvents.length);
  }

  #remove(count: number): void {
    for (const { bytes } of this.#queuedEvents.splice(0, count)) this.#queuedBytes -= bytes;
  }

  /** Returns the next batch, of the oldest {@link BATCH_SIZE} events: only the late ones if there are any, else all. */
  #nextBatch(): Batch {
    const nowMs = this.#nowMs();
    const first = this.#queuedEvents.slice(0, BATCH_SIZE);
    const lateEvents = first.filter(({ addedAtMs }) => nowMs - addedAtMs >= LATE_MS);
    return lateEvents.length > 0 ? { events: lateEvents, isLate: true } : { events: first, isLate: false };
  }

  #sleep(waitMs: number): Promise<void> {
    if (this.#isStopping) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /**
   * Returns the number of events that the queue rejected for their data. They are set aside, so that later events do
   * not wait. If the database is unavailable, the reconciler finds these events and sets them aside.
   */
  async #sendOrQuarantine(batch: Batch): Promise<number> {
    try {
      await this.#send(batch);
      return 0;
    } catch (error) {
      if (!(error instanceof JobsRejectedError)) throw error;
      const errors = new Map(error.rejected.map(({ jobId, error }) => [jobId, error]));
      const rejected = batch.events.flatMap(({ event }) => {
        const jobId = eventJobId(event);
        return errors.has(jobId) ? [{ event, error: errors.get(jobId) }] : [];
      });
      await this.#options.quarantine(rejected).catch((err: unknown) => {
        this.#options.logger.warn({ err }, 'rejected events not set aside, left to the reconciler');
      });
      return rejected.length;
    }
  }

  async #send({ events: batch, isLate }: Batch): Promise<void> {
    const { events: queue, traces } = this.#options;
    const events = batch.map(({ event }) => event);
    // Traced events have separate jobs in any case.
    if (traces) await addTraced(queue, batch, traces);
    else if (isLate) await queue.addEach(events);
    else await queue.add(events);
  }
}

/** Adds each event with the trace of the call that caused it, so that events of one batch keep separate traces. */
async function addTraced(
  queue: Pick<EventQueue, 'add'>,
  batch: readonly CommittedEvent[],
  traces: Traces,
): Promise<void> {
  const tracedEvents = batch.map(({ event, traceContext }) => {
    const attributes = { 'runhook.event.id': event.eventId, 'messaging.destination.name': JOB_RUN_EVENTS };
    return { event, span: traces.start('relay', { kind: 'producer', parent: traceContext, attributes }) };
  });
  try {
    await queue.add(
      tracedEvents.map(({ event }) => event),
      tracedEvents.map(({ span }) => span.run(() => traces.serializeContext())),
    );
  } catch (error) {
    for (const { span } of tracedEvents) span.fail('queue_unavailable');
    throw error;
  } finally {
    for (const { span } of tracedEvents) span.end();
  }
}
