import type { LaneJob } from '@runhook/contract';
import { isPermanentRejection } from '@runhook/database';
import { endedWithin } from '@runhook/runtime';
import { type Attemptable, attempt, keyOf, laneOf, logAndSchedule } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { type Delivery, undeliverableReason } from './policy/next-step.ts';
import type { Lane } from './record/parked.ts';

/** Result of a lane's job: nothing is deferred any more, or the job must run again. */
export type LaneResult = { kind: 'done' } | { kind: 'again'; delayMs: number };

/** Time after which the job of a lane ends, so that others can run, and is queued again. */
const TURN_MS = 10_000;
/** Interval at which an empty lane is checked for newly deferred deliveries until all attempts have ended. */
const LOOK_EVERY_MS = 100;
/** Number of deliveries that are cancelled at once while nothing may be sent for a subscription any more. */
const CANCEL_PAGE = 500;

/**
 * Runs the job of a lane: takes the deferred deliveries, oldest first, as slots become free, and attempts them. Each
 * subscription with deferred deliveries has one such job, however many there are (docs/architecture.md#lanes).
 */
export async function drainLane(dispatcher: Dispatcher, job: LaneJob): Promise<LaneResult> {
  const { limits, stopping, record } = dispatcher;
  const { subscriptionId, accountId = await record.accountOf(job) } = job;
  if (accountId === null) return { kind: 'done' };
  const turn = new LaneTurn(dispatcher, { subscriptionId, accountId });
  let againMs: number | null = null;
  limits.beginDraining(subscriptionId);
  try {
    const block = await record.claimProbe(subscriptionId);
    limits.setBlocked(subscriptionId, block?.blockedMs ?? 0);
    if (block?.isProbe && !(await turn.probe())) return { kind: 'done' };
    if (block !== null) {
      againMs = limits.waitMs(subscriptionId);
      return { kind: 'again', delayMs: againMs };
    }
    const untilMs = performance.now() + TURN_MS;
    let isEmpty = false;
    while (!isEmpty && !stopping.aborted && performance.now() < untilMs) {
      const room = turn.room();
      if (room > 0) {
        const taken = await turn.take(room);
        isEmpty = taken === 0 && turn.isIdle();
        if (taken < room) await turn.allEnded(LOOK_EVERY_MS);
      } else if (turn.isIdle()) break;
      else await turn.anyEnded();
      turn.throwFault();
    }
    await turn.allEnded();
    turn.throwFault();
    if (isEmpty) return { kind: 'done' };
    againMs = limits.waitMs(subscriptionId);
    return { kind: 'again', delayMs: againMs };
  } finally {
    await turn.allEnded();
    limits.endDraining(subscriptionId, againMs);
  }
}

/** Ensures that a lane has its job after a delivery was deferred. */
export function wakeLane({ limits, queue }: Dispatcher, { subscriptionId, event }: Attemptable): void {
  const delayMs = limits.untilTurnMs(subscriptionId);
  if (delayMs !== null) queue.wakeLane({ subscriptionId, accountId: event.accountId, delayMs });
}

class LaneTurn {
  readonly #dispatcher: Dispatcher;
  readonly #lane: Lane;
  readonly #inFlight = new Set<Promise<void>>();
  /** Slots are free, but the server of the lane has no capacity for the account's attempts. */
  #isOriginFull = false;
  #isUndeliverable = false;
  #fault: { error: unknown } | null = null;

  constructor(dispatcher: Dispatcher, lane: Lane) {
    this.#dispatcher = dispatcher;
    this.#lane = lane;
  }

  /** Returns how many deliveries to take now; 0 until enough slots are free to be worth a statement. */
  room(): number {
    if (this.#isUndeliverable) return CANCEL_PAGE;
    if (this.#isOriginFull) return 0;
    const room = this.#dispatcher.limits.room(this.#lane.subscriptionId);
    return room >= this.#inFlight.size / 4 ? room : 0;
  }

  isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  /**
   * Attempts one delivery of a blocked lane. Never makes a last attempt, so that no delivery fails because its endpoint
   * asked for a pause. Returns false if there is none.
   */
  async probe(): Promise<boolean> {
    const taken = await this.take(1, Math.max(1, this.#dispatcher.retryPolicy.retriesMax));
    await this.allEnded();
    this.throwFault();
    return taken > 0;
  }

  /** Starts the attempts of the deliveries that it takes, and returns their number. */
  async take(limit: number, attemptsBelow?: number): Promise<number> {
    const { record, attemptMs } = this.#dispatcher;
    const taken = await record.takeParked({ ...this.#lane, limit, attemptMs, attemptsBelow });
    this.#isUndeliverable = taken.length > 0;
    for (const delivery of taken) {
      const work = this.#deliver(delivery, attemptsBelow !== undefined)
        .catch((error: unknown) => {
          if (isPermanentRejection(error))
            return this.#dispatcher.quarantine.setAsideDelivery(keyOf(delivery), error);
          throw error;
        })
        .catch((error: unknown) => {
          this.#fault ??= { error };
        })
        .finally(() => this.#inFlight.delete(work));
      this.#inFlight.add(work);
    }
    return taken.length;
  }

  async anyEnded(): Promise<void> {
    await Promise.race(this.#inFlight);
  }

  /** @param atMostMs waits no longer than this */
  async allEnded(atMostMs?: number): Promise<void> {
    const ended = Promise.all(this.#inFlight);
    if (atMostMs === undefined) await ended;
    else if (!this.isIdle()) await endedWithin(atMostMs, ended);
  }

  throwFault(): void {
    if (this.#fault) throw this.#fault.error;
  }

  async #deliver(delivery: Delivery, isProbe: boolean): Promise<void> {
    const { record, limits, metrics } = this.#dispatcher;
    const { target } = delivery;
    const reason = undeliverableReason(target);
    if (target === null || reason !== null) {
      await record.cancelDelivery({ ...keyOf(delivery), reason: reason ?? '' });
      metrics.completed.cancelled.inc();
      return;
    }
    this.#isUndeliverable = false;
    const slot = limits.acquireQueued(laneOf(this.#dispatcher, delivery, target), isProbe);
    if (!slot) {
      this.#isOriginFull = true;
      return await record.park(keyOf(delivery));
    }
    const attempted = await attempt(this.#dispatcher, slot, delivery, target).catch(
      async (error: unknown) => {
        // An internal error before anything was sent, such as an unreadable secret: the delivery waits in its lane.
        if (!isPermanentRejection(error)) await record.park(keyOf(delivery));
        throw error;
      },
    );
    await logAndSchedule(this.#dispatcher, delivery, attempted);
  }
}
