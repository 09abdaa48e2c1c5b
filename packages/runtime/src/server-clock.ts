/** A time on which several processes agree even if the clocks of their hosts differ. */
export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number;
}

/** The clock of this host. */
export const LOCAL_CLOCK: Clock = { nowMs: () => Date.now() };

export interface ServerClockOptions {
  /** Returns the time of the server (PostgreSQL, or the queue's), in milliseconds since the epoch. */
  read: () => Promise<number>;
  /** The clock of this host; replaced in tests. */
  localNowMs?: () => number;
  monotonicMs?: () => number;
}

/** A larger drift between the local clock and the monotonic one means that one of them was stepped or halted. */
const STEP_MS = 1_000;
/** A measurement with a round trip of at most this length is exact enough, so no further one is made. */
const SHORT_ROUND_TRIP_MS = 20;
const READS_MAX = 3;

/**
 * The clock of a server. {@link measure} reads it and must be called regularly; in between it is continued by the
 * monotonic clock, so that a step of the local clock has no effect. Until the first measurement it is the clock of this
 * host.
 */
export class ServerClock implements Clock {
  readonly #read: () => Promise<number>;
  readonly #localNowMs: () => number;
  readonly #monotonicMs: () => number;
  /** The server's time when the monotonic clock was at 0. */
  #originMs: number | null = null;
  /** The local time when the monotonic clock was at 0, as of the last measurement. */
  #localOriginMs = 0;
  #measuredAtMs = Number.NEGATIVE_INFINITY;

  constructor({
    read,
    localNowMs = () => Date.now(),
    monotonicMs = () => performance.now(),
  }: ServerClockOptions) {
    this.#read = read;
    this.#localNowMs = localNowMs;
    this.#monotonicMs = monotonicMs;
  }

  nowMs(): number {
    return this.#originMs === null ? this.#localNowMs() : Math.round(this.#originMs + this.#monotonicMs());
  }

  /** Returns the lead of the local clock over the server's in milliseconds; negative if it is behind. */
  get offsetMs(): number {
    return this.#localNowMs() - this.nowMs();
  }

  /**
   * Whether the clock was measured within `ageMs` and is still valid. It is invalid if the local clock was set or the
   * host was suspended since, because the monotonic clock of a virtual machine stops while it is suspended.
   */
  isMeasuredWithin(ageMs: number): boolean {
    const monotonicMs = this.#monotonicMs();
    const steppedMs = this.#localNowMs() - monotonicMs - this.#localOriginMs;
    return monotonicMs - this.#measuredAtMs <= ageMs && Math.abs(steppedMs) < STEP_MS;
  }

  /**
   * Reads the server's clock, repeatedly if the round trip is long, and uses the shortest round trip; assumes that the
   * server read its clock in the middle of it. Throws the errors of `read`.
   */
  async measure(): Promise<void> {
    let shortestMs = Number.POSITIVE_INFINITY;
    let originMs = 0;
    for (let reads = 0; reads < READS_MAX && shortestMs > SHORT_ROUND_TRIP_MS; reads += 1) {
      const sentMs = this.#monotonicMs();
      const serverMs = await this.#read();
      const roundTripMs = this.#monotonicMs() - sentMs;
      if (roundTripMs >= shortestMs) continue;
      shortestMs = roundTripMs;
      originMs = serverMs - sentMs - roundTripMs / 2;
    }
    this.#originMs = originMs;
    this.#measuredAtMs = this.#monotonicMs();
    this.#localOriginMs = this.#localNowMs() - this.#measuredAtMs;
  }
}
