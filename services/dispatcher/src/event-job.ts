import { batchedEvents, committedVersion, eventIdForJob, parseEvent } from '@runhook/contract';
import type { IdentifiedEvent, Job } from '@runhook/queue';
import type { Dispatcher } from './dispatcher.ts';
import { type Committed, fanOut } from './fan-out.ts';

/** What is read of an event's job. */
type EventJob = Pick<Job<unknown>, 'id' | 'data' | 'timestamp'> & {
  attemptsStarted?: number;
  opts?: { priority?: number };
};

export type EventJobResult =
  | { kind: 'done' }
  | { kind: 'malformed'; problem: string }
  /** Of several: these need jobs of their own, in which they stay to be seen. The others are done. */
  | { kind: 'some_malformed'; events: IdentifiedEvent[] };

/** The work of a job, of one event or of several. Throws a fault of our own once all of them have ended. */
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
    // The others are claimed by now: when the job comes again, they find it out.
    if (result.status === 'rejected') throw result.reason;
    if (result.value !== null) malformed.push(events[index] as IdentifiedEvent);
  }
  return malformed.length === 0 ? { kind: 'done' } : { kind: 'some_malformed', events: malformed };
}

/** Answers why nobody can deliver the message; null once it is done. */
async function processEvent(
  dispatcher: Dispatcher,
  { id, timestamp, attemptsStarted = 1, opts }: EventJob,
  message: unknown,
  retentionDays: number,
): Promise<string | null> {
  const { inHand, metrics } = dispatcher;
  // The rest of a burst is taken when nothing else waits, in here as in the queue.
  const entering = inHand.acquire((opts?.priority ?? 0) > 0);
  if (entering) await entering;
  try {
    const { event, problems } = parseEvent(message, {
      eventId: () => eventIdForJob(id ?? '', timestamp),
      timestampMs: timestamp,
      nowMs: Date.now(),
      retentionDays,
    });
    if (problems) return problems.map(({ message }) => message).join('; ');
    const interrupted = attemptsStarted > 1;
    const result = await fanOut(dispatcher, event, {
      interrupted,
      committed: committedAs(message, timestamp),
    });
    if (result.kind === 'unknown_account') return 'accountId is not an account';
    metrics.events[result.kind].inc();
    return null;
  } finally {
    inHand.release();
  }
}

/** What its producer said of an event; either clock may be wrong, and then it is not taken for new. */
function committedAs(message: unknown, addedAtMs: number): Committed | null {
  const accountVersion = committedVersion(message);
  if (accountVersion === null) return null;
  return { accountVersion, atMs: performance.now() - Math.abs(Date.now() - addedAtMs) };
}
