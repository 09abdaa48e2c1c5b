/** What a statement says of the transactions that were running when it began, as ids that only grow. */
export interface SnapshotEdges {
  /** Every transaction with a smaller id had ended. */
  oldestRunning: bigint;
  /** No transaction had this id yet, nor a greater one. */
  next: bigint;
}

/** A turn of the relay whose transaction was committed. */
export interface OutboxTurn {
  /** It read the entries beyond this. */
  after: bigint;
  /** What it read and moved: the first and the last sequence; null for nothing. */
  moved: { first: bigint; last: bigint } | null;
  /** Nothing visible was left beyond what it moved. */
  isAll: boolean;
}

/** What a bound is safe by, should all else fail. Costs a read of all dead entries. */
const LOOK_FROM_START_EVERY_MS = 30_000;
/** Twice what the longest transaction that reports a run can take: some other one runs, and will not hold up the bound. */
const WAIT_MAX_MS = 60_000;

/**
 * A sequence up to which the outbox is empty and stays so. Without it each read passes all entries that are gone and that
 * an old snapshot (a backup, a report) still keeps from being cleared away: 1,000,000 take 145 ms.
 *
 * An entry's sequence is drawn before its transaction commits, so one below those that were moved may appear later. The
 * last sequence of a turn becomes the bound in these steps:
 * 1. seen: the turn is committed
 * 2. awaited: every transaction with an id below the `next` of a later snapshot may still bring a smaller sequence
 * 3. over: they have all ended
 * 4. a turn that began after that has moved what they left, from the old bound on: now it is the bound
 *
 * Once in half a minute a turn looks from the start all the same: a transaction that drew before it had an id, a database
 * that was put back to an earlier state, and one that outlasts {@link WAIT_MAX_MS} delay an event for so long, no longer.
 */
export class OutboxBound {
  #bound = 0n;
  /** The last sequence of all turns: the next candidate. */
  #movedUpTo = 0n;
  #candidate: { sequence: bigint; seenMs: number; awaited: bigint | null; isOver: boolean } | null = null;
  #lookedFromStartMs: number;

  constructor(nowMs: number) {
    this.#lookedFromStartMs = nowMs;
  }

  get value(): bigint {
    return this.#bound;
  }

  /** Where a turn has to read from. @param edges of a snapshot that is older than its read */
  begin(edges: SnapshotEdges, nowMs: number): bigint {
    const candidate = this.#candidate;
    if (candidate && candidate.awaited === null) candidate.awaited = edges.next;
    else if (candidate && candidate.awaited !== null) {
      const isAwaitedTooLong = nowMs - candidate.seenMs >= WAIT_MAX_MS;
      candidate.isOver ||= edges.oldestRunning >= candidate.awaited || isAwaitedTooLong;
    }
    return nowMs - this.#lookedFromStartMs >= LOOK_FROM_START_EVERY_MS ? 0n : this.#bound;
  }

  /** A turn that {@link begin} began is committed. */
  end({ after, moved, isAll }: OutboxTurn, nowMs: number): void {
    if (after === 0n) this.#lookedFromStartMs = nowMs;
    if (moved && moved.first <= this.#bound) {
      this.#bound = 0n;
      this.#movedUpTo = 0n;
      this.#candidate = null;
    }
    if (moved && moved.last > this.#movedUpTo) this.#movedUpTo = moved.last;
    const candidate = this.#candidate;
    if (candidate?.isOver && (isAll || (moved && moved.last >= candidate.sequence))) {
      this.#bound = candidate.sequence;
      this.#candidate = null;
    }
    if (this.#candidate === null && this.#movedUpTo > this.#bound) {
      this.#candidate = { sequence: this.#movedUpTo, seenMs: nowMs, awaited: null, isOver: false };
    }
  }
}
