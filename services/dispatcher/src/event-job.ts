import {
  batchedEvents,
  createId,
  type EventDefaults,
  eventIdForJob,
  isEventIdOutOfRange,
  type JobRunEvent,
  parseEvent,
  type RunStep,
} from '@runhook/contract';
import { isPermanentRejection } from '@runhook/database';
import type { IdentifiedEvent, Job } from '@runhook/queue';
import type { Dispatcher } from './dispatcher.ts';
import { type FanOutResult, fanOut } from './fan-out.ts';
import { slotsOf } from './policy/events-in-flight.ts';
import type { MessageRejection } from './record/quarantine.ts';

/**
 * Tries of a job after which a further one sets an event aside that the record rejects for its data. If it rejects one
 * of the deliveries, the second try commits the event, and the third resumes its deliveries in separate jobs.
 */
const QUARANTINE_AFTER_TRIES = 2;

/** Fields that are read of an event's job. */
type EventJob = Pick<Job<unknown>, 'id' | 'data' | 'timestamp'> & {
  attemptsStarted?: number;
  opts?: { priority?: number };
};

export type EventJobResult =
  | { kind: 'done' }
  | { kind: 'malformed'; problem: string }
  /** Some events of a shared job are malformed: these need separate jobs, which stay failed. The others are done. */
  | { kind: 'some_malformed'; events: IdentifiedEvent[] };

/** Processes a job with one or several events. An internal error is thrown once all of its events have ended. */
export async function processEvents(
  dispatcher: Dispatcher,
  job: EventJob,
  retentionDays: number,
): Promise<EventJobResult> {
  const events = batchedEvents(job.data);
  if (events === null) {
    const problem = await processEvent(dispatcher, job, job.data, retentionDays);
    return problem === null ? { kind: 'done' } : { kind: 'malformed', problem };
  }
  const malformed: IdentifiedEvent[] = [];
  const results = await Promise.allSettled(
    events.map((event) => processEvent(dispatcher, job, event, retentionDays)),
  );
  for (const [index, result] of results.entries()) {
    // The retry of the job finds the other events claimed, and only queues their pending deliveries.
    if (result.status === 'rejected') throw result.reason;
    if (result.value !== null) malformed.push(events[index] as IdentifiedEvent);
  }
  return malformed.length === 0 ? { kind: 'done' } : { kind: 'some_malformed', events: malformed };
}

/** Returns null once the message is dispatched or set aside, or the problem if it is malformed. */
async function processEvent(
  dispatcher: Dispatcher,
  { id, timestamp, attemptsStarted = 1, opts }: EventJob,
  message: unknown,
  retentionDays: number,
): Promise<string | null> {
  const { metrics, clock } = dispatcher;
  const createEventId = () => eventIdForJob(id ?? '', timestamp);
  const defaults = { eventId: createEventId, timestampMs: timestamp, nowMs: clock.nowMs(), retentionDays };
  const { event, problems } = parseEvent(message, defaults);
  if (problems) {
    const problem = problems.map(({ message }) => message).join('; ');
    return (await setAsideOutOfRange(dispatcher, message, defaults, problem)) ? null : problem;
  }
  // Events beyond the burst limit have the lower priority here, as in the queue.
  const isLowPriority = (opts?.priority ?? 0) > 0;
  const steps = dispatcher.messageSteps.read(event, message);
  const releaseSlot = await dispatcher.events.acquire(isLowPriority, slotsOf(event, steps));
  try {
    // A receiver may read the run at once: its steps and its state are on record before the first attempt.
    const hasSteps = steps !== null && (await storeSteps(dispatcher, event, steps));
    const isInterrupted = attemptsStarted > 1 || hasSteps;
    const result = await dispatch(dispatcher, event, isInterrupted, releaseSlot).catch(
      async (error: unknown) => {
        if (attemptsStarted <= QUARANTINE_AFTER_TRIES || !isPermanentRejection(error)) throw error;
        await dispatcher.quarantine.setAsideEvent(event, error);
        return null;
      },
    );
    if (result === null) return null;
    if (result.kind === 'unknown_account') return 'accountId is not an account';
    if (result.kind === 'conflict')
      await dispatcher.quarantine.setAsideMessage(CONFLICT, event, defaults.nowMs);
    metrics.events[result.kind].inc();
    return null;
  } finally {
    releaseSlot();
  }
}

/** Returns whether the steps belong to the event: not those of a conflicting event, or of an unknown account. */
async function storeSteps(
  { record, messageSteps }: Dispatcher,
  event: JobRunEvent,
  steps: readonly RunStep[],
): Promise<boolean> {
  if ((await record.accounts.get(event.accountId)) === null) return false;
  const { status } = await record.loadEventState({ event, version: null });
  if (status === 'conflict') return false;
  await messageSteps.store(event, steps);
  return true;
}

const CONFLICT: MessageRejection = {
  kind: 'conflict',
  reason: 'eventId names an event that is on record with other data',
};

/** Sets aside an event that is invalid only because of the time in its id. Returns whether the event is one. */
async function setAsideOutOfRange(
  { quarantine, metrics }: Dispatcher,
  message: unknown,
  defaults: EventDefaults,
  reason: string,
): Promise<boolean> {
  const { nowMs } = defaults;
  const { eventId = defaults.eventId() } = (message ?? {}) as { eventId?: unknown };
  if (typeof eventId !== 'string' || !isEventIdOutOfRange(eventId, defaults)) return false;
  const inRange = { ...(message as object), eventId: createId('event', nowMs) };
  // The job's timestamp may be wrong too, because it comes from the same clock as the id.
  const { event } = parseEvent(inRange, { ...defaults, timestampMs: nowMs });
  if (event === undefined) return false;
  await quarantine.setAsideMessage({ kind: 'out_of_range', reason }, { ...event, eventId }, nowMs);
  metrics.events.out_of_range.inc();
  return true;
}

/**
 * Fans an event out. If another event with its id is on record, that one is fanned out instead: the queue ignores a
 * second job with the same id, so this may be its only job.
 */
async function dispatch(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  interrupted: boolean,
  onCommitted: () => void,
): Promise<FanOutResult> {
  const result = await fanOut(dispatcher, event, interrupted, onCommitted);
  if (result.kind !== 'conflict') return result;
  const recorded = await dispatcher.record.loadEvent(event);
  if (recorded !== null) await fanOut(dispatcher, recorded, interrupted, onCommitted);
  return result;
}
