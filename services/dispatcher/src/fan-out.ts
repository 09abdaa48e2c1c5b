import { attemptsLeft, eventJobId, type JobRunEvent } from '@runhook/contract';
import type { Dispatcher } from './dispatcher.ts';
import {
  beginFirstAttempt,
  createFirstAttempt,
  type FirstAttempt,
  type FirstAttemptCommit,
  FRESH_MS,
  newDelivery,
} from './first-attempt.ts';
import { slotsOf } from './policy/events-in-flight.ts';
import { type CachedSubscription, isLaneOnly, matchSubscriptions } from './policy/next-step.ts';
import type { CommitOutcome, CommitResult } from './record/commit-events.ts';
import type { EventState } from './record/event-states.ts';
import { throwIfStopping } from './record/retry-while-unavailable.ts';

/** An event with more deliveries is committed in pages, so that its statement does not delay those of other events. */
const SINGLE_COMMIT_DELIVERIES_MAX = 50;

/**
 * An event whose first attempts take longer than this is committed with the results that it has, so that the log is
 * nearly current; most endpoints respond sooner. While other events wait for a slot, an event is committed sooner and
 * releases its own, although its pending deliveries cost a second write. If the timer is more than BUSY_LATE_MS late,
 * the CPU delays the attempts, not their endpoints, so the event is not committed sooner.
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
 * When this resolves, every delivery was attempted and recorded, deferred, cancelled or queued: the job may end.
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
    serializeByKey(dispatcher, eventJobId(event), () =>
      planAndCommit(dispatcher, event, interrupted, onCommitted),
    ),
  );
}

/** Serializes the jobs of one event in this process: a second job starts after the first and finds its result on record. */
function serializeByKey<T>(dispatcher: Dispatcher, key: string, work: () => Promise<T>): Promise<T> {
  const { fanOutsInFlight } = dispatcher;
  const running = fanOutsInFlight.get(key);
  if (running) {
    const retry = () => serializeByKey(dispatcher, key, work);
    return running.then(retry, retry);
  }
  const result = work();
  fanOutsInFlight.set(key, result);
  const remove = () => void fanOutsInFlight.delete(key);
  result.then(remove, remove);
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
      const account = await accounts.get(event.accountId);
      if (!account) return { kind: 'unknown_account' };
      const matched = matchSubscriptions(account, event);
      // Deliveries of one event may exceed the account's limit: pages already committed must not cancel the remaining ones.
      const subscriptions: CachedSubscription[] =
        pending.length > 0 ? matched.map((one) => ({ ...one, isFull: false })) : matched;
      deliveries = subscriptions.length;
      const mustResume =
        interrupted || record.commits.mustCommitFirst || deliveries > SINGLE_COMMIT_DELIVERIES_MAX;
      const commit = mustResume ? commitThenAttempt : attemptThenCommit;
      const { version } = account;
      result = await commit(dispatcher, { event, version, subscriptions }, pending);
      if (result === 'outdated') accounts.invalidate(account);
    } while (result === 'outdated');
    onCommitted();
  } finally {
    await awaitAll(pending);
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
function awaitAll(pending: readonly Promise<void>[]): Promise<void> | undefined {
  return pending.length > 1 ? settleAll(pending) : pending[0];
}

async function settleAll(pending: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(pending);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** An event with its matching subscriptions, as of a version of the account. */
interface FanOutPlan {
  event: JobRunEvent;
  version: string;
  subscriptions: readonly CachedSubscription[];
}

/** Recorded state of an event before any of its requests is sent. */
type Start = { event: JobRunEvent; isRecorded: boolean; result?: never } | { result: CommitResult };

/** Returns the event with the timestamp on record, which every attempt sends; or the result if no fan-out follows. */
function resolveStart(event: JobRunEvent, { status, timestamp }: EventState): Start {
  if (status === 'new') return { event, isRecorded: false };
  if (status !== 'undispatched') return { result: status === 'dispatched' ? 'duplicate' : status };
  const isSame = timestamp === null || timestamp === event.timestamp;
  return { event: isSame ? event : { ...event, timestamp }, isRecorded: true };
}

/**
 * Makes the first attempts, then commits the event with the successful ones in one write; this is the usual case.
 * Attempts that a killed dispatcher has not committed are made again when its job is retried, like every request whose
 * response was not recorded (docs/adr/0043-attempt-before-commit.md).
 */
async function attemptThenCommit(
  dispatcher: Dispatcher,
  { event, version, subscriptions }: FanOutPlan,
  pending: Promise<void>[],
): Promise<CommitResult> {
  const { record, requests, events, stopping } = dispatcher;
  throwIfStopping(stopping);
  // Permits are acquired before planning, because a plan that waits becomes outdated. Without permits the deliveries are
  // recorded as deferred, or cancelled if their lane is full.
  const { firstAttempts: permitPool } = requests.permits;
  const immediate = subscriptions.filter(({ target }) => !isLaneOnly(target)).length;
  const perAttempt = permitPool.forEach(event, immediate);
  const count = immediate * perAttempt;
  let unusedPermits = await permitPool.acquire(event.accountId, count, slotsOf(event));
  const permits = unusedPermits === 0 ? 0 : perAttempt;
  try {
    // From here, the first attempts begin within FRESH_MS.
    throwIfStopping(stopping);
    const plannedAtMs = performance.now();
    const start = resolveStart(event, await record.loadEventState({ event, version }));
    if (start.result !== undefined) return start.result;
    const firstAttempts = subscriptions.map((subscription) =>
      createFirstAttempt(dispatcher, start.event, subscription),
    );
    unusedPermits = 0;
    const isUrgent = () => events.waiting > 0;
    const commit = new TimedFirstAttemptCommit(firstAttempts, isUrgent, async () =>
      record.commits.commitAttempted({
        event: start.event,
        // Requests that were sent are recorded whatever version their account has.
        version: firstAttempts.length === 0 ? version : null,
        deliveries: firstAttempts.map(newDelivery),
        plannedAtMs,
        isRecorded: start.isRecorded,
      }),
    );
    for (const firstAttempt of firstAttempts) {
      const ownPermits = isLaneOnly(firstAttempt.target) ? 0 : permits;
      const options = { plannedAtMs, permits: ownPermits, commit };
      track(pending, beginFirstAttempt(dispatcher, firstAttempt, options));
    }
    return (await commit.outcome).result;
  } finally {
    permitPool.release(event.accountId, unusedPermits);
  }
}

/** Commits an event once, when all its first attempts have ended or some time after the start. */
class TimedFirstAttemptCommit implements FirstAttemptCommit {
  readonly outcome: Promise<CommitOutcome>;
  readonly #firstAttempts: readonly FirstAttempt[];
  readonly #commit: () => Promise<CommitOutcome>;
  readonly #timer: NodeJS.Timeout | undefined;
  #resolve: (outcome: Promise<CommitOutcome>) => void = () => {};
  #remaining: number;
  #hasBegun = false;

  /** @param commit must not throw synchronously; it may reject */
  constructor(
    firstAttempts: readonly FirstAttempt[],
    isUrgent: () => boolean,
    commit: () => Promise<CommitOutcome>,
  ) {
    this.#firstAttempts = firstAttempts;
    this.#remaining = firstAttempts.length;
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
    if (firstAttempts.length === 0) this.#begin();
  }

  attemptEnded(): void {
    this.#remaining -= 1;
    if (this.#remaining === 0 && !this.#hasBegun) this.#begin();
  }

  #begin(): void {
    this.#hasBegun = true;
    clearInterval(this.#timer);
    for (const firstAttempt of this.#firstAttempts) firstAttempt.committedResult = firstAttempt.result;
    this.#resolve(this.#commit());
  }
}

/**
 * Commits the deliveries, in pages if there are many, and after each commit attempts those that were not on record. The
 * last one marks the event as dispatched. Used for interrupted jobs, many deliveries, and while commits are stalled.
 */
async function commitThenAttempt(
  dispatcher: Dispatcher,
  { event, version, subscriptions }: FanOutPlan,
  pending: Promise<void>[],
): Promise<CommitResult> {
  const { record, requests, stopping } = dispatcher;
  const start = resolveStart(event, await record.loadEventState({ event, version }));
  if (start.result !== undefined) return start.result;
  let { isRecorded } = start;
  let committed = 0;
  do {
    let page: FirstAttempt[] = [];
    let plannedAtMs = 0;
    const plan = (size: number) => {
      throwIfStopping(stopping);
      plannedAtMs = performance.now();
      page = subscriptions
        .slice(committed, committed + size)
        .map((subscription) => createFirstAttempt(dispatcher, start.event, subscription));
      const isPartial = committed + page.length < subscriptions.length;
      return { event: start.event, version, deliveries: page.map(newDelivery), isRecorded, isPartial };
    };
    const { result, added } =
      subscriptions.length > SINGLE_COMMIT_DELIVERIES_MAX
        ? await record.commits.commitPage(plan)
        : await record.commits.commitEvent(plan(SINGLE_COMMIT_DELIVERIES_MAX));
    if (result !== 'claimed') return result;
    isRecorded = true;
    committed += page.length;
    const begin = (firstAttempt: FirstAttempt, permits: number) =>
      track(pending, beginFirstAttempt(dispatcher, firstAttempt, { plannedAtMs, permits }));
    const attemptable: FirstAttempt[] = [];
    for (const firstAttempt of page.filter(({ delivery }) => added.has(delivery.id)))
      if (firstAttempt.waitsInLane) begin(firstAttempt, 0);
      else attemptable.push(firstAttempt);
    const { firstAttempts: permitPool } = requests.permits;
    const perAttempt = permitPool.forEach(event, attemptable.length);
    const count = attemptable.length * perAttempt;
    const leftMs = plannedAtMs + FRESH_MS - performance.now();
    const acquired = await permitPool.acquire(event.accountId, count, slotsOf(event), leftMs);
    for (const firstAttempt of attemptable) begin(firstAttempt, acquired === 0 ? 0 : perAttempt);
  } while (committed < subscriptions.length);
  return 'claimed';
}

/** Tracks a promise. The no-op catch keeps Node from reporting an unhandled rejection before settleAll() awaits it. */
function track(pending: Promise<void>[], promise: Promise<void>): void {
  promise.catch(() => {});
  pending.push(promise);
}

/** Queues the event's pending deliveries that are neither queued nor deferred. */
async function resume(
  { record, queue, retryPolicy, attemptMs }: Dispatcher,
  event: JobRunEvent,
): Promise<number> {
  const { accountId } = event;
  const pending = await record.loadPendingDeliveries(event, FRESH_MS + attemptMs);
  await queue.enqueueMissing(
    pending.map(({ id, cycle, attemptCount, delayMs }) => {
      const remainingAttempts = attemptsLeft(retryPolicy, { cycle, attemptCount });
      return { deliveryId: id, cycle, accountId, delayMs, attemptsLeft: remainingAttempts };
    }),
  );
  return pending.length;
}
