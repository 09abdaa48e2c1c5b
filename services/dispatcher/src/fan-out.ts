import { attemptsLeft, eventJobId, type JobRunEvent } from '@runhook/contract';
import { JUST_COMMITTED_MS } from '@runhook/queue';
import type { Dispatcher } from './dispatcher.ts';
import {
  begin,
  type EventCommit,
  type FirstAttempt,
  FRESH_MS,
  firstOf,
  newDelivery,
} from './first-attempt.ts';
import { type KnownSubscription, matching } from './policy/next-step.ts';
import type { FanOutCommit } from './record/commit-fan-out.ts';

/**
 * An event with more deliveries than this is committed in pages, so that its statement does not stand before everybody
 * else's, and claimed after the last: a crash between pages resumes with what is missing.
 */
const AT_ONCE_MAX = 50;

/**
 * Whose first attempts take longer than this is committed meanwhile, with what has become of them by then. Most endpoints
 * answer sooner, and the log is not long behind.
 */
const COMMIT_AFTER_MS = 500;

export type FanOutResult =
  | { kind: 'fanned_out'; deliveries: number }
  | { kind: 'duplicate' }
  | { kind: 'resumed'; deliveries: number }
  | { kind: 'unknown_account' };

/** What the producer of an event knew of its account when the event was committed, and when that was, as `performance.now()`. */
export interface Committed {
  accountVersion: string;
  atMs: number;
}

/** How an event has come. */
export interface Arrival {
  /** Its job ran before and did not end, so deliveries it committed may be left undone. */
  interrupted: boolean;
  /** Null when nobody says. */
  committed: Committed | null;
}

/**
 * Turns an event into deliveries and makes their first attempts, each in place or, without a slot in its lane, as a parked
 * one. When this resolves, every delivery is attempted and recorded, or parked: the job may go.
 */
export function fanOut(dispatcher: Dispatcher, event: JobRunEvent, arrival: Arrival): Promise<FanOutResult> {
  return dispatcher.spans.fanOut(event, () =>
    oneAtATime(dispatcher, eventJobId(event), () => planAndCommit(dispatcher, event, arrival)),
  );
}

/** A job that comes while another of this process has its event finds out what became of it. */
function oneAtATime<T>(dispatcher: Dispatcher, key: string, work: () => Promise<T>): Promise<T> {
  const { underWay } = dispatcher;
  const other = underWay.get(key);
  if (other) {
    const again = () => oneAtATime(dispatcher, key, work);
    return other.then(again, again);
  }
  const result = work();
  underWay.set(key, result);
  const forget = () => void underWay.delete(key);
  result.then(forget, forget);
  return result;
}

/** Plans with the subscriptions as they are known, and again whenever they are found to be others by now. */
async function planAndCommit(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  { interrupted, committed }: Arrival,
): Promise<FanOutResult> {
  const { record, metrics } = dispatcher;
  const { accounts } = record;
  /** What has to end before the job may go. */
  const works: Promise<void>[] = [];
  let deliveries: number;
  let result: FanOutCommit;
  try {
    do {
      const account = await accounts.of(event.accountId);
      if (!account) return { kind: 'unknown_account' };
      const known = matching(account, event);
      // Lanes that its own first pages have filled take the rest of it, too.
      const subscriptions: KnownSubscription[] =
        works.length > 0 ? known.map((one) => ({ ...one, isFull: false })) : known;
      deliveries = subscriptions.length;
      const isFirstTry = !interrupted && !record.isRefused;
      const commit =
        deliveries > AT_ONCE_MAX ? commitInPages : isFirstTry ? attemptThenCommit : commitThenAttempt;
      const { version } = account;
      result = await commit(dispatcher, { event, version, subscriptions, committed }, works);
      if (result === 'outdated') accounts.forget(account);
    } while (result === 'outdated');
  } finally {
    await allEnded(works);
  }
  if (result === 'claimed') {
    metrics.fanOutSize.observe(deliveries);
    // Pages that were committed before the interruption.
    if (interrupted && deliveries > AT_ONCE_MAX) await resume(dispatcher, event);
    return { kind: 'fanned_out', deliveries };
  }
  // Another job with this event's id owns what is pending, and a second request must not come from here.
  if (!interrupted) return { kind: 'duplicate' };
  return { kind: 'resumed', deliveries: await resume(dispatcher, event) };
}

/**
 * Waits for the others when one fails: the job comes again and queues what is pending, and an attempt that were still on
 * its way then would be made twice. Throws the first error.
 */
function allEnded(works: readonly Promise<void>[]): Promise<void> | undefined {
  return works.length > 1 ? allOf(works) : works[0];
}

async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** An event for the subscriptions that it fires for, as its account was at a version. */
interface Planning {
  event: JobRunEvent;
  version: string;
  subscriptions: readonly KnownSubscription[];
  committed: Committed | null;
}

/**
 * The way of nearly all events: nothing is written before their first attempts have ended, and then everything at once.
 * What a dispatcher does not live to commit is made again by whoever gets its job, like every request whose answer was
 * not recorded (docs/adr/0043-attempted-then-committed.md).
 */
async function attemptThenCommit(
  dispatcher: Dispatcher,
  { event, version, subscriptions, committed }: Planning,
  works: Promise<void>[],
): Promise<FanOutCommit> {
  const { record, planned: line } = dispatcher;
  const storedAtMs = committed?.accountVersion === version ? committed.atMs : Number.NEGATIVE_INFINITY;
  const isStored = () => performance.now() - storedAtMs < JUST_COMMITTED_MS;
  if (subscriptions.length === 0)
    return await record.commitFanOut({ event, version, deliveries: [], isStored: isStored() });
  // What is planned before its turn is not fresh any more when that comes.
  let inLine = subscriptions.length;
  const entering = line.acquire(inLine);
  if (entering) await entering;
  try {
    let plannedAtMs = performance.now();
    const isJustStored = isStored();
    if (isJustStored) plannedAtMs = storedAtMs;
    else {
      const state = await record.stateOf({ event, version });
      if (state !== 'open') return state;
    }
    const firsts = subscriptions.map((subscription) => firstOf(dispatcher, event, subscription));
    inLine = 0;
    const commit = new CommitOfFirsts(firsts, async () =>
      record.commitAttempted({
        event,
        // Requests that were made are on record, whatever their account is by now.
        version: null,
        deliveries: firsts.map(newDelivery),
        ageMs: performance.now() - plannedAtMs,
        isStored: isJustStored,
      }),
    );
    const leaveLine = () => line.release();
    for (const first of firsts) keep(works, begin(dispatcher, first, { plannedAtMs, leaveLine, commit }));
    return await commit.result;
  } finally {
    line.release(inLine);
  }
}

/** The one commit of an event with its first attempts: once all of them have ended, or `COMMIT_AFTER_MS` after the start. */
class CommitOfFirsts implements EventCommit {
  readonly result: Promise<FanOutCommit>;
  readonly #firsts: readonly FirstAttempt[];
  readonly #commit: () => Promise<FanOutCommit>;
  readonly #timer: NodeJS.Timeout;
  #resolve: (result: Promise<FanOutCommit>) => void = () => {};
  #left: number;
  #hasBegun = false;

  /** @param commit throws nothing, but may reject: whoever ends last or a timer calls it */
  constructor(firsts: readonly FirstAttempt[], commit: () => Promise<FanOutCommit>) {
    this.#firsts = firsts;
    this.#left = firsts.length;
    this.#commit = commit;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#timer = setTimeout(() => this.#begin(), COMMIT_AFTER_MS);
  }

  attemptEnded(): void {
    this.#left -= 1;
    if (this.#left === 0 && !this.#hasBegun) this.#begin();
  }

  #begin(): void {
    this.#hasBegun = true;
    clearTimeout(this.#timer);
    for (const first of this.#firsts) first.committed = first.attempted;
    this.#resolve(this.#commit());
  }
}

/**
 * Of a job that came back, for what is on record already was perhaps attempted, and is not this job's; and while the
 * database refuses what was attempted.
 */
async function commitThenAttempt(
  dispatcher: Dispatcher,
  { event, version, subscriptions }: Planning,
  works: Promise<void>[],
): Promise<FanOutCommit> {
  const { record, planned: line } = dispatcher;
  let inLine = subscriptions.length;
  if (inLine > 0) await line.acquire(inLine);
  try {
    const plannedAtMs = performance.now();
    const firsts = subscriptions.map((subscription) => firstOf(dispatcher, event, subscription));
    const result = await record.commitFanOut({ event, version, deliveries: firsts.map(newDelivery) });
    if (result === 'claimed') {
      inLine = 0;
      for (const first of firsts)
        keep(works, begin(dispatcher, first, { plannedAtMs, leaveLine: () => line.release() }));
    }
    return result;
  } finally {
    line.release(inLine);
  }
}

/** The event is claimed once all pages are committed. What an earlier try committed is left to whoever has it. */
async function commitInPages(
  dispatcher: Dispatcher,
  { event, version, subscriptions }: Planning,
  works: Promise<void>[],
): Promise<FanOutCommit> {
  const { record } = dispatcher;
  for (let start = 0, end = 0; start < subscriptions.length; start = end) {
    let page: FirstAttempt[] = [];
    let plannedAtMs = 0;
    const added = await record.commitPage((size) => {
      end = start + size;
      plannedAtMs = performance.now();
      page = subscriptions.slice(start, end).map((one) => firstOf(dispatcher, event, one));
      return { event, version, deliveries: page.map(newDelivery) };
    });
    if (added === null) return 'outdated';
    for (const first of page)
      if (added.has(first.delivery.id)) keep(works, begin(dispatcher, first, { plannedAtMs }));
  }
  return await record.commitFanOut({ event, version, deliveries: [], isPaged: true });
}

/** One that fails before the others are waited for is not taken for one that nobody waits for. */
function keep(works: Promise<void>[], work: Promise<void>): void {
  work.catch(() => {});
  works.push(work);
}

/** Queues what is pending; what is queued already stays as it is. */
async function resume(
  { record, queue, retryPolicy, attemptMs }: Dispatcher,
  event: JobRunEvent,
): Promise<number> {
  const { accountId } = event;
  const pending = await record.pendingDeliveriesOf(event, FRESH_MS + attemptMs);
  await queue.enqueueMissing(
    pending.map(({ id, cycle, attemptCount, delayMs }) => {
      const left = attemptsLeft(retryPolicy, { cycle, attemptCount });
      return { deliveryId: id, cycle, accountId, delayMs, attemptsLeft: left };
    }),
  );
  return pending.length;
}
