import { attemptsLeft, eventJobId, type JobRunEvent } from '@runhook/contract';
import type { Dispatcher } from './dispatcher.ts';
import {
  begin,
  type FirstAttempt,
  type FirstAttemptCommit,
  FRESH_MS,
  firstOf,
  newDelivery,
} from './first-attempt.ts';
import { type KnownSubscription, matching } from './policy/next-step.ts';
import type { CommitOutcome, CommitResult } from './record/commit-events.ts';
import type { EventState } from './record/event-states.ts';

/** An event with more deliveries is committed in pages, so that its statement does not delay those of other events. */
const AT_ONCE_MAX = 50;

/**
 * An event whose first attempts take longer than this is committed with the results that it has, so that the log is
 * nearly current; most endpoints respond sooner. While other events wait for a slot, an event is committed sooner and
 * releases its own, although its pending deliveries cost a second write. A late timer means that the processor delays
 * the attempts, not their endpoints.
 */
const COMMIT_AFTER_MS = 500;
const URGENT_COMMIT_AFTER_MS = 50;
const BUSY_LATE_MS = 4;

export type FanOutResult =
  | { kind: 'fanned_out'; deliveries: number }
  | { kind: 'duplicate' }
  | { kind: 'resumed'; deliveries: number }
  | { kind: 'unknown_account' }
  /** Another event with this id is on record, with another type or other data. */
  | { kind: 'conflict' };

/**
 * Turns an event into deliveries and makes their first attempts. A delivery without a slot in its lane is deferred.
 * When this resolves, every delivery is attempted and recorded, or deferred, so the job may be acknowledged.
 * @param interrupted whether the event's job ran before and did not end, so that deliveries that it committed may be
 * pending
 * @param onCommitted called once the event is committed, while its first attempts may be in flight
 */
export function fanOut(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  interrupted: boolean,
  onCommitted: () => void,
): Promise<FanOutResult> {
  return dispatcher.spans.fanOut(event, () =>
    oneAtATime(dispatcher, eventJobId(event), () =>
      planAndCommit(dispatcher, event, interrupted, onCommitted),
    ),
  );
}

/** Serializes the jobs of one event in this process: a second job starts after the first and finds its result on record. */
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

/** Plans with the cached subscriptions, and plans again while the record has another version of the account. */
async function planAndCommit(
  dispatcher: Dispatcher,
  event: JobRunEvent,
  interrupted: boolean,
  onCommitted: () => void,
): Promise<FanOutResult> {
  const { record, metrics } = dispatcher;
  const { accounts } = record;
  /** First attempts that must end before the job is acknowledged. */
  const pending: Promise<void>[] = [];
  let deliveries: number;
  let result: CommitResult;
  try {
    do {
      const account = await accounts.of(event.accountId);
      if (!account) return { kind: 'unknown_account' };
      const matched = matching(account, event);
      // Deliveries of one event may exceed the account's limit: pages already committed must not cancel the remaining ones.
      const subscriptions: KnownSubscription[] =
        pending.length > 0 ? matched.map((one) => ({ ...one, isFull: false })) : matched;
      deliveries = subscriptions.length;
      const mustResume = interrupted || record.commits.mustCommitFirst || deliveries > AT_ONCE_MAX;
      const commit = mustResume ? commitThenAttempt : attemptThenCommit;
      const { version } = account;
      result = await commit(dispatcher, { event, version, subscriptions }, pending);
      if (result === 'outdated') accounts.forget(account);
    } while (result === 'outdated');
    onCommitted();
  } finally {
    await allEnded(pending);
  }
  if (result === 'conflict') return { kind: 'conflict' };
  if (result === 'claimed') {
    metrics.fanOutSize.observe(deliveries);
    // Deliveries of pages that were committed before the interruption were not attempted here.
    if (interrupted) await resume(dispatcher, event);
    return { kind: 'fanned_out', deliveries };
  }
  // Another job with this event's id is responsible for pending deliveries; this job must not send a second request.
  if (!interrupted) return { kind: 'duplicate' };
  return { kind: 'resumed', deliveries: await resume(dispatcher, event) };
}

/**
 * Waits for all promises even if one rejects: the job is then retried and queues pending deliveries, and an attempt
 * still in flight would be made twice. Throws the first error.
 */
function allEnded(works: readonly Promise<void>[]): Promise<void> | undefined {
  return works.length > 1 ? allOf(works) : works[0];
}

async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(works);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** An event with its matching subscriptions, as of a version of the account. */
interface Planning {
  event: JobRunEvent;
  version: string;
  subscriptions: readonly KnownSubscription[];
}

/** Recorded state of an event before any of its requests is sent. */
type Start = { event: JobRunEvent; isRecorded: boolean; result?: never } | { result: CommitResult };

/** Returns the event with the timestamp on record, which every attempt sends. */
function startOf(event: JobRunEvent, { status, timestamp }: EventState): Start {
  if (status === 'new') return { event, isRecorded: false };
  if (status !== 'undispatched') return { result: status === 'dispatched' ? 'known' : status };
  const isSame = timestamp === null || timestamp === event.timestamp;
  return { event: isSame ? event : { ...event, timestamp }, isRecorded: true };
}

/**
 * Makes the first attempts, then commits the event with all results in one write; this is the usual case. Attempts that
 * a killed dispatcher has not committed are made again when its job is retried, like every request whose response was
 * not recorded (docs/adr/0043-attempt-before-commit.md).
 */
async function attemptThenCommit(
  dispatcher: Dispatcher,
  { event, version, subscriptions }: Planning,
  pending: Promise<void>[],
): Promise<CommitResult> {
  const { record, requests, events } = dispatcher;
  // A plan that waits for permits becomes outdated, so it is made when the event has them.
  let unused = subscriptions.length;
  await requests.acquire(unused);
  try {
    const plannedAtMs = performance.now();
    const start = startOf(event, await record.stateOf({ event, version }));
    if (start.result !== undefined) return start.result;
    const firsts = subscriptions.map((subscription) => firstOf(dispatcher, start.event, subscription));
    unused = 0;
    const isUrgent = () => events.waiting > 0;
    const commit = new CommitOfFirsts(firsts, isUrgent, async () =>
      record.commits.commitAttempted({
        event: start.event,
        // Requests that were sent are recorded whatever version their account has.
        version: firsts.length === 0 ? version : null,
        deliveries: firsts.map(newDelivery),
        plannedAtMs,
        isRecorded: start.isRecorded,
      }),
    );
    for (const first of firsts) track(pending, begin(dispatcher, first, { plannedAtMs, commit }));
    return (await commit.outcome).result;
  } finally {
    requests.release(unused);
  }
}

/** Commits an event once, when all its first attempts have ended or some time after the start. */
class CommitOfFirsts implements FirstAttemptCommit {
  readonly outcome: Promise<CommitOutcome>;
  readonly #firsts: readonly FirstAttempt[];
  readonly #commit: () => Promise<CommitOutcome>;
  readonly #timer: NodeJS.Timeout | undefined;
  #resolve: (outcome: Promise<CommitOutcome>) => void = () => {};
  #left: number;
  #hasBegun = false;

  /** @param commit must not throw synchronously; it may reject */
  constructor(
    firsts: readonly FirstAttempt[],
    isUrgent: () => boolean,
    commit: () => Promise<CommitOutcome>,
  ) {
    this.#firsts = firsts;
    this.#left = firsts.length;
    this.#commit = commit;
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const startMs = performance.now();
    let dueMs = startMs;
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      dueMs += URGENT_COMMIT_AFTER_MS;
      const isLoopBusy = nowMs - dueMs > BUSY_LATE_MS;
      dueMs = nowMs;
      if (nowMs - startMs >= COMMIT_AFTER_MS || (isUrgent() && !isLoopBusy)) this.#begin();
    }, URGENT_COMMIT_AFTER_MS);
    if (firsts.length === 0) this.#begin();
  }

  attemptEnded(): void {
    this.#left -= 1;
    if (this.#left === 0 && !this.#hasBegun) this.#begin();
  }

  #begin(): void {
    this.#hasBegun = true;
    clearInterval(this.#timer);
    for (const first of this.#firsts) first.committed = first.attempted;
    this.#resolve(this.#commit());
  }
}

/**
 * Commits the deliveries, in pages if there are many, then attempts those that were not on record. The last page claims
 * the event. Used for interrupted jobs, events with many deliveries, and while the database rejects commits.
 */
async function commitThenAttempt(
  dispatcher: Dispatcher,
  { event, version, subscriptions }: Planning,
  pending: Promise<void>[],
): Promise<CommitResult> {
  const { record, requests } = dispatcher;
  const start = startOf(event, await record.stateOf({ event, version }));
  if (start.result !== undefined) return start.result;
  let { isRecorded } = start;
  let committed = 0;
  do {
    let page: FirstAttempt[] = [];
    let plannedAtMs = 0;
    const plan = (size: number) => {
      plannedAtMs = performance.now();
      page = subscriptions
        .slice(committed, committed + size)
        .map((subscription) => firstOf(dispatcher, start.event, subscription));
      const isPartial = committed + page.length < subscriptions.length;
      return { event: start.event, version, deliveries: page.map(newDelivery), isRecorded, isPartial };
    };
    const { result, added } =
      subscriptions.length > AT_ONCE_MAX
        ? await record.commits.commitPage(plan)
        : await record.commits.commitEvent(plan(AT_ONCE_MAX));
    if (result !== 'claimed') return result;
    isRecorded = true;
    committed += page.length;
    const toBegin = page.filter(({ delivery }) => added.has(delivery.id));
    await requests.acquire(toBegin.length);
    for (const first of toBegin) track(pending, begin(dispatcher, first, { plannedAtMs }));
  } while (committed < subscriptions.length);
  return 'claimed';
}

/** Tracks a promise. The no-op catch keeps Node from reporting an unhandled rejection before allEnded() awaits it. */
function track(pending: Promise<void>[], promise: Promise<void>): void {
  promise.catch(() => {});
  pending.push(promise);
}

/** Queues the pending deliveries that are not queued yet. */
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
