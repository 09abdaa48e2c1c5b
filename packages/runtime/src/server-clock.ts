/** The time that several processes agree on, whatever the clocks of their hosts say. */
export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number;
}

/** The clock of this host. */
export const LOCAL_CLOCK: Clock = { nowMs: () => Date.now() };

export interface ServerClockOptions {
  /** Returns the time of the server, in milliseconds since the epoch. */
  read: () => Promise<number>;
  /** The clock of this host; for tests. */
  localNowMs?: () => number;
  /** A clock that is never set; for tests. */
  monotonicMs?: () => number;
}

/** A larger drift between the local clock and the monotonic one means that one of them was stepped or halted. */
const STEP_MS = 1_000;
/** A round trip of at most this length is exact enough. */
const SHORT_ROUND_TRIP_MS = 20;
const READS_MAX = 3;

/**
 * The clock of a server. It is read in {@link measure}, which its owner calls regularly, and continued by the monotonic clock in between, so
 * that a step of the local clock changes nothing. Until the first measurement it is the clock of this host.
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

  /** How far the local clock is ahead of the server's, in milliseconds; negative when it is behind. */
  get offsetMs(): number {
    return this.#localNowMs() - this.nowMs();
  }

  /**
   * Whether the clock was measured within `ageMs`, and since then neither the local clock was set nor the host halted: the monotonic clock
   * of a virtual machine stands still while the machine is suspended.
   */
  isMeasuredWithin(ageMs: number): boolean {
    const monotonicMs = this.#monotonicMs();
    const steppedMs = this.#localNowMs() - monotonicMs - this.#localOriginMs;
    return monotonicMs - this.#measuredAtMs <= ageMs && Math.abs(steppedMs) < STEP_MS;
  }

  /**
   * Reads the server's clock, again after a long round trip, and uses the shortest one: the server is assumed to have read its clock in
   * the middle of it. Throws what `read` throws.
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
