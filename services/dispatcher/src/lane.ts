import type { LaneJob } from '@runhook/contract';
import { isPermanentRejection } from '@runhook/database';
import { waitAtMost } from '@runhook/runtime';
import {
  type AttemptableDelivery,
  type AttemptResult,
  attempt,
  deliveryKeyOf,
  laneOf,
  logAndSchedule,
} from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { reasonNotToSend } from './format.ts';
import { type Delivery, tracksJobs, undeliverableReason } from './policy/next-step.ts';
import { permitsOf } from './policy/permits.ts';
import type { LaneKey } from './record/deferred.ts';
import type { Cancellation, DeliveryKey } from './record/deliveries.ts';
import { throwIfStopping } from './record/retry-while-unavailable.ts';
import type { Target } from './target.ts';

/** Result of a lane's job: nothing is deferred any more, or the job must run again. */
export type LaneResult = { kind: 'done' } | { kind: 'reschedule'; delayMs: number };

/** Time after which the job of a lane ends, so that others can run, and is queued again. It waits for its attempts. */
const PASS_MS = 10_000;
/** Interval at which the job of a lane checks for deliveries, slots and permits while its attempts are in flight. */
const POLL_EVERY_MS = 100;
/** Minimum delay of the job of a lane with free slots, but without permits or capacity of its server. */
const FULL_WAIT_MS = 1_000;
/** Maximum number of deferred deliveries of a lane that are cancelled at once, without loading their data. */
const CANCEL_PAGE = 500;

/**
 * Runs the job of a lane: takes the deferred deliveries, oldest first, as slots become free, and attempts them. Each
 * subscription with deferred deliveries has one such job, however many there are (docs/architecture.md#lanes).
 */
export async function drainLane(dispatcher: Dispatcher, job: LaneJob): Promise<LaneResult> {
  const { limits, stopping, record } = dispatcher;
  const { subscriptionId, accountId = await record.loadAccountId(job) } = job;
  if (accountId === null) return { kind: 'done' };
  throwIfStopping(stopping);
  const pass = new LanePass(dispatcher, { subscriptionId, accountId });
  let nextDelayMs: number | null = null;
  limits.beginDraining(subscriptionId);
  try {
    const block = await record.claimProbe(subscriptionId);
    limits.update({ subscriptionId, accountId, ...block });
    if (block.isProbe && !(await pass.probe())) return { kind: 'done' };
    if (block.blockedMs > 0) {
      nextDelayMs = limits.waitMs(subscriptionId);
      return { kind: 'reschedule', delayMs: nextDelayMs };
    }
    let isEmpty = false;
    while (!isEmpty && !stopping.aborted && !pass.isOver()) {
      const capacity = pass.capacity();
      if (capacity > 0) {
        const claimedCount = await pass.claim(capacity);
        isEmpty = claimedCount === 0 && pass.isIdle();
        if (claimedCount < capacity) await pass.waitForAll(POLL_EVERY_MS);
      } else if (pass.isIdle()) break;
      else await pass.waitForAny();
      pass.throwFault();
    }
    await pass.waitForAll();
    pass.throwFault();
    if (isEmpty) return { kind: 'done' };
    nextDelayMs = Math.max(limits.waitMs(subscriptionId), pass.isFull ? FULL_WAIT_MS : 0);
    return { kind: 'reschedule', delayMs: nextDelayMs };
  } finally {
    await pass.waitForAll();
    limits.endDraining(subscriptionId, nextDelayMs);
  }
}

/** Ensures that a lane has its job after a delivery was deferred. */
export function wakeLane(
  { limits, queue }: Dispatcher,
  { subscriptionId, event }: AttemptableDelivery,
): void {
  const delayMs = limits.laneJobDelayMs(subscriptionId);
  if (delayMs !== null) queue.wakeLane({ subscriptionId, accountId: event.accountId, delayMs });
}

/**
 * Attempts a retry or a deferred delivery. Returns null if it gets no permits or no slot: the caller must defer or delay it.
 * @param ignoresBlock true for a manual redelivery and for a probe of a blocked lane
 */
export async function attemptQueued(
  dispatcher: Dispatcher,
  delivery: Delivery,
  target: Target,
  ignoresBlock: boolean,
): Promise<AttemptResult | null> {
  const { accountId } = delivery.event;
  const { queued } = dispatcher.requests.permits;
  const permits = queued.tryAcquire(accountId, permitsOf(delivery.event));
  if (permits === 0) return null;
  try {
    const slot = dispatcher.limits.acquireQueued(laneOf(dispatcher, delivery, target), ignoresBlock);
    return slot && (await attempt(dispatcher, slot, delivery, target));
  } finally {
    queued.release(accountId, permits);
  }
}

class LanePass {
  /** Whether slots are free, but the account has no permits, or the server of the lane no capacity for its attempts. */
  isFull = false;
  readonly #dispatcher: Dispatcher;
  readonly #lane: LaneKey;
  readonly #inFlight = new Set<Promise<void>>();
  /** Latest delivery of each job, for a target that tracks jobs. */
  readonly #latestOfJobs = new Map<string, Promise<void>>();
  readonly #untilMs = performance.now() + PASS_MS;
  /** Attempts that were in flight when the time of the pass was over. */
  #lastAttempts: readonly Promise<void>[] | null = null;
  #fault: { error: unknown } | null = null;

  constructor(dispatcher: Dispatcher, lane: LaneKey) {
    this.#dispatcher = dispatcher;
    this.#lane = lane;
  }

  /**
   * Returns how many deliveries to take now; 0 until enough slots are free to be worth a statement. The lane of a webhook
   * for which `isLaneOnly` holds makes all of its automatic attempts, so a limit of their rate belongs here: what a pass
   * takes is what it sends, except for the deliveries that `claim` leaves waiting for an earlier one of their run.
   */
  capacity(): number {
    const { limits, requests } = this.#dispatcher;
    const slots = limits.freeSlots(this.#lane.subscriptionId);
    if (slots < this.#inFlight.size / 4) return 0;
    const permits = requests.permits.queued.free(this.#lane.accountId);
    this.isFull ||= permits <= 0;
    return this.isFull ? 0 : Math.min(slots, permits);
  }

  /**
   * Whether the time of the pass is over and the attempts that were then in flight have ended. The pass waits for them
   * anyway, and an attempt that hangs must not leave the lane idle. With the attempts that it starts meanwhile, it takes
   * at most PASS_MS and two deadlines.
   */
  isOver(): boolean {
    if (performance.now() < this.#untilMs) return false;
    this.#lastAttempts ??= [...this.#inFlight];
    return !this.#lastAttempts.some((attempt) => this.#inFlight.has(attempt));
  }

  isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  /**
   * Attempts one delivery of a blocked lane. If retries are on, never makes a last attempt, so that no delivery fails
   * because its endpoint asked for a pause. Returns false if there is no such delivery.
   */
  async probe(): Promise<boolean> {
    const claimedCount = await this.claim(1, Math.max(1, this.#dispatcher.retryPolicy.retriesMax));
    await this.waitForAll();
    this.throwFault();
    return claimedCount > 0;
  }

  /** Takes deferred deliveries, and attempts them or cancels them with further ones. Returns the number taken. */
  async claim(limit: number, attemptsBelow?: number): Promise<number> {
    const { record, requests, attemptMs } = this.#dispatcher;
    const permitsMax = requests.permits.queued.free(this.#lane.accountId);
    const claimed = await record.claimDeferred({
      ...this.#lane,
      limit,
      permitsMax,
      attemptMs,
      attemptsBelow,
    });
    const [first] = claimed;
    const reason = first === undefined ? null : undeliverableReason(first.target);
    if (first !== undefined && reason !== null) {
      this.#cancelAll(claimed.map(deliveryKeyOf), reason);
      await this.#cancelDeferred(deliveryKeyOf(first));
    } else
      for (const delivery of claimed)
        this.#track(deliveryKeyOf(delivery), this.#deliverInTurn(delivery, attemptsBelow !== undefined));
    return claimed.length;
  }

  #track(key: DeliveryKey, work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (isPermanentRejection(error)) return this.#dispatcher.quarantine.setAsideDelivery(key, error);
        throw error;
      })
      .catch((error: unknown) => {
        this.#fault ??= { error };
      })
      .finally(() => this.#inFlight.delete(tracked));
    this.#inFlight.add(tracked);
  }

  /** Waits until an attempt (all, if `isFull`) ends, at most POLL_EVERY_MS: other lanes may release permits first. */
  async waitForAny(): Promise<void> {
    // Retries of the lane, which are other jobs, may have the slots while one attempt of this pass hangs.
    if (!this.isFull) return await waitAtMost(POLL_EVERY_MS, Promise.race(this.#inFlight));
    await this.waitForAll(POLL_EVERY_MS);
    this.isFull = this.isIdle();
  }

  async waitForAll(timeoutMs?: number): Promise<void> {
    const ended = Promise.all(this.#inFlight);
    if (timeoutMs === undefined) await ended;
    else if (!this.isIdle()) await waitAtMost(timeoutMs, ended);
  }

  throwFault(): void {
    if (this.#fault) throw this.#fault.error;
  }

  /** Cancels further deliveries of the lane, without loading their data. `claimed` is one of the same subscription. */
  async #cancelDeferred(claimed: DeliveryKey): Promise<void> {
    const { record } = this.#dispatcher;
    const keys = await record.loadDeferredKeys({ ...this.#lane, limit: CANCEL_PAGE });
    // Reads the subscription after the keys, because deliveries that are deferred after its activation must be sent. A
    // single statement would not do: in a distributed log, its nodes have no common snapshot.
    const delivery = keys.length === 0 ? null : await record.loadDelivery(claimed);
    const reason = delivery && undeliverableReason(delivery.target);
    if (reason !== null) this.#cancelAll(keys, reason);
  }

  #cancelAll(keys: readonly DeliveryKey[], reason: string): void {
    for (const key of keys) this.#track(key, this.#cancel({ ...key, reason }));
  }

  async #cancel(cancellation: Cancellation): Promise<void> {
    await this.#dispatcher.record.cancelDelivery(cancellation);
    this.#dispatcher.metrics.completed.cancelled.inc();
  }

  /** Makes the attempts of one job one after another if the target tracks jobs. */
  #deliverInTurn(delivery: Delivery, isProbe: boolean): Promise<void> {
    if (!tracksJobs(delivery.target?.format ?? null)) return this.#deliver(delivery, isProbe);
    const { jobId } = delivery.event.data;
    // A turn that comes after the time of the pass is left to the next one, which bounds the duration of a pass.
    const deliver = () =>
      performance.now() < this.#untilMs
        ? this.#deliver(delivery, isProbe)
        : this.#dispatcher.record.defer(deliveryKeyOf(delivery));
    const turn = (this.#latestOfJobs.get(jobId) ?? Promise.resolve()).then(deliver, deliver);
    this.#latestOfJobs.set(jobId, turn);
    return turn;
  }

  async #deliver(delivery: Delivery, isProbe: boolean): Promise<void> {
    const { record, limits } = this.#dispatcher;
    // A delivery without a target is cancelled.
    const target = delivery.target as Target;
    const result = await this.#attempt(delivery, target, isProbe).catch(async (error: unknown) => {
      // An internal error before anything was sent, such as an unreadable secret: the delivery waits in its lane.
      if (!isPermanentRejection(error)) await record.defer(deliveryKeyOf(delivery));
      throw error;
    });
    if (result === 'cancelled') return;
    if (result === null) {
      // Without a free slot, the limit of the lane has fallen since the claim.
      this.isFull = limits.freeSlots(delivery.subscriptionId) > 0;
      return await record.defer(deliveryKeyOf(delivery));
    }
    await logAndSchedule(this.#dispatcher, delivery, result);
  }

  /** Attempts a delivery, or cancels one that its format does not send. */
  async #attempt(
    delivery: Delivery,
    target: Target,
    isProbe: boolean,
  ): Promise<AttemptResult | 'cancelled' | null> {
    const reason = target.format === null ? null : await reasonNotToSend(this.#dispatcher, delivery, target);
    if (reason === null) return await attemptQueued(this.#dispatcher, delivery, target, isProbe);
    await this.#cancel({ ...deliveryKeyOf(delivery), reason });
    return 'cancelled';
  }
}
