import {
  batchedEvents,
  eventIdForJob,
  isEventIdOutOfRange,
  type JobRunEvent,
  parseEvent,
} from '@runhook/contract';
import { isPermanentRejection } from '@runhook/database';
import type { IdentifiedEvent, Job } from '@runhook/queue';
import type { Dispatcher } from './dispatcher.ts';
import { type FanOutResult, fanOut } from './fan-out.ts';

/**
 * Tries after which an event that the record rejects for its data is set aside. A fault of one of its deliveries is isolated
 * earlier: the second try commits the event, and the third resumes its deliveries in separate jobs.
 */
const UNSETTLED_TRIES = 2;

/** What is read of an event's job. */
type EventJob = Pick<Job<unknown>, 'id' | 'data' | 'timestamp'> & {
  attemptsStarted?: number;
  opts?: { priority?: number };
};

/**
 * Why a message cannot be delivered. `conflict`: an event with the same id is on record with another type or other data.
 * `out_of_range`: its id carries a time outside the log.
 */
export interface Rejection {
  result: 'malformed' | 'conflict' | 'out_of_range';
  problem: string;
}

export type EventJobResult =
  | { kind: 'done' }
  | { kind: 'rejected'; rejection: Rejection }
  /** Some events of a shared job were rejected: these need separate jobs, which stay in the failed set. The others are done. */
  | { kind: 'some_rejected'; events: IdentifiedEvent[] };

/** The work of a job, of one event or of several. Throws a fault of our own once all of them have ended. */
export async function processEvents(
  dispatcher: Dispatcher,
  job: EventJob,
  retentionDays: number,
): Promise<EventJobResult> {
  const events = batchedEvents(job.data);
  if (events === null) {
    const rejection = await processEvent(dispatcher, job, job.data, retentionDays);
    return rejection === null ? { kind: 'done' } : { kind: 'rejected', rejection };
  }
  const rejected: IdentifiedEvent[] = [];
  const results = await Promise.allSettled(
    events.map((event) => processEvent(dispatcher, job, event, retentionDays)),
  );
  for (const [index, result] of results.entries()) {
    // The others are claimed by now: when the job comes again, they find it out.
    if (result.status === 'rejected') throw result.reason;
    if (result.value !== null) rejected.push(events[index] as IdentifiedEvent);
  }
  return rejected.length === 0 ? { kind: 'done' } : { kind: 'some_rejected', events: rejected };
}

/** Returns null once the message is dispatched. */
async function processEvent(
  dispatcher: Dispatcher,
  { id, timestamp, attemptsStarted = 1, opts }: EventJob,
  message: unknown,
  retentionDays: number,
): Promise<Rejection | null> {
  const { inHand, metrics, clock } = dispatcher;
  // The rest of a burst is taken when nothing else waits, in here as in the queue.
  const entering = inHand.acquire((opts?.priority ?? 0) > 0);
  if (entering) await entering;
  try {
    const ownId = () => eventIdForJob(id ?? '', timestamp);
    const limits = { nowMs: clock.nowMs(), retentionDays };
    const { event, problems } = parseEvent(message, { eventId: ownId, timestampMs: timestamp, ...limits });
    if (problems) {
      const problem = problems.map(({ message }) => message).join('; ');
      const { eventId = ownId() } = (message ?? {}) as { eventId?: unknown };
      return { result: isEventIdOutOfRange(eventId, limits) ? 'out_of_range' : 'malformed', problem };
    }
    const result = await dispatch(dispatcher, event, attemptsStarted > 1).catch(async (error: unknown) => {
      if (attemptsStarted <= UNSETTLED_TRIES || !isPermanentRejection(error)) throw error;
      await dispatcher.quarantine.setAsideEvent(event, error);
      return null;
    });
    if (result === null) return null;
    if (result.kind === 'unknown_account') return malformed('accountId is not an account');
    if (result.kind === 'conflict')
      return { result: 'conflict', problem: 'eventId names an event that is on record with other data' };
    metrics.events[result.kind].inc();
    return null;
  } finally {
    inHand.release();
  }
}

const malformed = (problem: string): Rejection => ({ result: 'malformed', problem });

/**
 * Fans an event out. If the record has another event of its id, that one is fanned out first: the queue drops a second job of the
 * same id, so this may be its only job.
 */
async function dispatch(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  interrupted: boolean,
): Promise<FanOutResult> {
  const result = await fanOut(dispatcher, event, interrupted);
  if (result.kind !== 'conflict') return result;
  const recorded = await dispatcher.record.loadEvent(event);
  if (recorded !== null) await fanOut(dispatcher, recorded, interrupted);
  return result;
}
