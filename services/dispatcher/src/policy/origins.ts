import { LRUCache } from 'lru-cache';

/** Subscription, account and server of an attempt. */
export interface Lane {
  subscriptionId: string;
  accountId: number;
  /** Scheme, host and port. */
  origin: string;
  /** Remaining milliseconds for which `Retry-After` blocks the subscription; 0 if it does not. */
  blockedMs: number;
}

/** Result of an attempt, for the limiter. */
export type LaneOutcome = 'succeeded' | 'failed' | 'not_connected';

/**
 * Options of the caches, which bound them by size: with `max` a cache would allocate all entries at once, and most
 * dispatchers have few.
 */
const PROVEN_OPTIONS = { maxSize: 20_000, sizeCalculation: () => 1 };
const UNREACHABLE_AFTER = 3;

/**
 * Interval between the jobs of the lanes of an unreachable server: the jobs of a thousand lanes run within half a
 * minute.
 */
const START_GAP_MS = 30;
/** Maximum time by which the job of a lane of an unreachable server is postponed. */
const START_DELAY_MAX_MS = 30_000;

/** A server whose latest connections failed. */
interface ConnectionFailures {
  /** Number of consecutive attempts that could not connect. */
  failures: number;
  nextProbeAtMs: number;
  /** Time at which the most recently scheduled job of a lane runs. */
  lastStartAtMs: number;
}

/** States of the servers, derived from the attempts of all lanes. */
export class Origins {
  readonly #proven = new LRUCache<string, true>(PROVEN_OPTIONS);
  readonly #connectionFailures = new LRUCache<string, ConnectionFailures>(PROVEN_OPTIONS);

  /** Whether the latest attempt at the server succeeded. */
  isProven(origin: string | null): boolean {
    return origin !== null && (this.#proven.get(origin) ?? false);
  }

  /** Whether the latest three attempts could not connect. Any other result of an attempt ends this. */
  isUnreachable(origin: string | null): boolean {
    return (this.#getFailures(origin)?.failures ?? 0) >= UNREACHABLE_AFTER;
  }

  /** Whether a lane of the server may be probed. An unreachable server gets one probe at a time, for all its lanes. */
  canProbe(origin: string | null, nowMs: number): boolean {
    return !this.isUnreachable(origin) || (this.#getFailures(origin)?.nextProbeAtMs ?? 0) <= nowMs;
  }

  delayProbe(origin: string | null, atMs: number): void {
    const connectionFailures = this.#getFailures(origin);
    if (connectionFailures) connectionFailures.nextProbeAtMs = atMs;
  }

  /** Returns the time for the job of a lane: now, or for an unreachable server after its other jobs and next probe. */
  nextStartAtMs(origin: string | null, nowMs: number): number {
    const connectionFailures = this.#getFailures(origin);
    if (!connectionFailures || !this.isUnreachable(origin)) return nowMs;
    const earliestMs = Math.max(
      connectionFailures.lastStartAtMs + START_GAP_MS,
      connectionFailures.nextProbeAtMs,
    );
    connectionFailures.lastStartAtMs = Math.min(earliestMs, nowMs + START_DELAY_MAX_MS);
    return connectionFailures.lastStartAtMs;
  }

  #getFailures(origin: string | null): ConnectionFailures | undefined {
    return origin === null ? undefined : this.#connectionFailures.get(origin);
  }

  /** @param nextProbeAtMs time at which the server may be probed again if the attempt could not connect */
  note(origin: string, outcome: LaneOutcome, nextProbeAtMs: number): void {
    if (outcome === 'succeeded') this.#proven.set(origin, true);
    else this.#proven.delete(origin);
    if (outcome === 'not_connected') {
      const { failures, lastStartAtMs } = this.#connectionFailures.get(origin) ?? {
        failures: 0,
        lastStartAtMs: 0,
      };
      this.#connectionFailures.set(origin, { failures: failures + 1, nextProbeAtMs, lastStartAtMs });
    } else this.#connectionFailures.delete(origin);
  }
}
