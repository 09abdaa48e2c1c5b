import { eventsMax } from './events-in-flight.ts';
import { Permits, SharedCapacity } from './permits.ts';
import { StartSchedule } from './probe-budget.ts';

/*
 * Requests in flight of this process, one of the four admission controls on the path of an event
 * (docs/architecture.md#admission-controls): attempts of the process and of each account, by the length of their
 * events; first attempts of each subscription; all attempts of endpoints that do not respond, and those at a server.
 *
 * | State of a first attempt | Entered when | Left when |
 * |---|---|---|
 * | waiting for permits | fewer permits are free than its account has and its event needs, added up (SharedCapacity); or events of its account wait already. Waiting events have at most half of the slots for events in flight, which accounts share by the same rule; an event beyond that is deferred | its event has permits for all its deliveries, or its account has released none for 500 ms. While it releases some, the wait has no limit, except 500 ms after their plan for deliveries that are committed first |
 * | waiting for a slot | its subscription has no slot, one is expected within 500 ms, and at most 32 of its first attempts (a quarter of the slots for events) are in flight or waiting | a slot is released, or 500 ms have passed since its plan |
 * | in flight | the limiter of its subscription (subscription-limiter.ts) gave it a slot | its request has ended |
 * | deferred | it may not wait, or got no permits or slot in time | the job of its lane attempts it |
 *
 * A short wait is cheaper than a deferred row, which is written, read and updated. Retries and deferred deliveries have
 * as many permits as first attempts, and are deferred without them. Attempts of endpoints that do not respond share
 * slots that grow by slow start, and all attempts at a server share its capacity; the limiter checks both.
 */

/** Permits per job in flight: an event may have many deliveries, and an endpoint may be distant. */
const PERMITS_PER_JOB = 4;
const WAITING_FOR_PERMITS_SHARE = 1 / 2;
/** Time without a released permit after which the waiting events of an account are deferred. */
const PERMIT_IDLE_MS = 500;
const WAITING_SHARE = 1 / 4;

/** Slow-start slots at first, and again after SLOW_START_RESET_MS without attempts of the lanes that share them. */
const SLOW_START_INITIAL = 32;
const SLOW_START_STEP_MS = 50;
const SLOW_START_RESET_MS = 1_000;
/**
 * Divisors of `concurrency`: lanes in slow start (`SlowStartSlots`) get at most a quarter of it for first attempts, and
 * half of it for queued ones.
 */
const SLOW_START_FIRST_ATTEMPTS_SHARE = 4;
const SLOW_START_QUEUED_SHARE = 2;
const SERVER_MAX = 4_096;

interface Share {
  /** First attempts in flight or waiting. */
  count: number;
  readonly waiters: Set<() => void>;
}

/** Account of an attempt, and the server that it is made at. */
interface ServerUse {
  origin: string;
  accountId: number;
}

export class RequestsInFlight {
  readonly servers = new ServerCapacity();
  /** Permits for first attempts, and for retries and deferred deliveries. Each must be released. */
  readonly permits: { firstAttempts: Permits; queued: Permits };
  /** Slow-start slots for first attempts, and for retries and deferred deliveries. */
  readonly slowStart: { firstAttempts: SlowStartSlots; queued: SlowStartSlots };
  readonly #waitingMax: number;
  readonly #shares = new Map<string, Share>();

  /** @param concurrency jobs of a queue that this process may have in flight */
  constructor(concurrency: number, nowMs = () => performance.now()) {
    const slowStart = (share: number) => new SlowStartSlots(Math.ceil(concurrency / share), nowMs);
    this.slowStart = {
      firstAttempts: slowStart(SLOW_START_FIRST_ATTEMPTS_SHARE),
      queued: slowStart(SLOW_START_QUEUED_SHARE),
    };
    this.#waitingMax = eventsMax(concurrency) * WAITING_SHARE;
    const waitingSlotsMax = Math.ceil(eventsMax(concurrency) * WAITING_FOR_PERMITS_SHARE);
    const permits = () => new Permits(concurrency * PERMITS_PER_JOB, waitingSlotsMax, PERMIT_IDLE_MS);
    this.permits = { firstAttempts: permits(), queued: permits() };
  }

  /** Counts a first attempt of the subscription. The caller must call `leave` when it ends. */
  enter(subscriptionId: string): void {
    const share = this.#shares.get(subscriptionId) ?? { count: 0, waiters: new Set() };
    this.#shares.set(subscriptionId, share);
    share.count += 1;
  }

  leave(subscriptionId: string): void {
    const share = this.#shares.get(subscriptionId);
    if (!share) return;
    share.count -= 1;
    if (share.count === 0) this.#shares.delete(subscriptionId);
  }

  waiterCount(subscriptionId: string): number {
    return this.#shares.get(subscriptionId)?.waiters.size ?? 0;
  }

  /** Whether a first attempt of the subscription that has no slot may wait for one. */
  canWait(subscriptionId: string): boolean {
    return (this.#shares.get(subscriptionId)?.count ?? 0) <= this.#waitingMax;
  }

  /** Resolves once a slot of the subscription is released, in order of arrival, or after a time. Must follow `enter`. */
  waitForRelease(subscriptionId: string, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const waiters = this.#shares.get(subscriptionId)?.waiters;
      const wake = () => {
        clearTimeout(timer);
        waiters?.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      waiters?.add(wake);
    });
  }

  /** Must be called after the limiter has released a slot of the subscription. */
  noteRelease(subscriptionId: string): void {
    const [wake] = this.#shares.get(subscriptionId)?.waiters ?? [];
    wake?.();
  }
}

/** Limits the attempts at a server (scheme, host and port) over all accounts. */
class ServerCapacity {
  readonly #servers = new Map<string, SharedCapacity>();

  isFree({ origin, accountId }: ServerUse): boolean {
    return this.#servers.get(origin)?.isFree(accountId, 1) ?? true;
  }

  enter({ origin, accountId }: ServerUse): void {
    const server = this.#servers.get(origin) ?? new SharedCapacity(SERVER_MAX);
    this.#servers.set(origin, server);
    server.enter(accountId, 1);
  }

  leave({ origin, accountId }: ServerUse): void {
    const server = this.#servers.get(origin);
    server?.leave(accountId, 1);
    if (server?.isUnused) this.#servers.delete(origin);
  }
}

/**
 * Slots that all lanes share whose endpoint has not responded yet, hangs or fails (slow start). A thousand new endpoints
 * do not get connections at once, because these would compete with other events: 32 get one, one more after each
 * success, and one more every 50 ms.
 */
export class SlowStartSlots {
  readonly #max: number;
  readonly #nowMs: () => number;
  #taken = 0;
  /** Sum of the start times of the taken slots. */
  #startTimesSumMs = 0;
  /** Limit without the slots that were added over time since `#sinceMs`. */
  #baseLimit = SLOW_START_INITIAL;
  #sinceMs = 0;
  readonly #starts = new StartSchedule();
  #lastEndMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, nowMs: () => number) {
    this.#max = max;
    this.#nowMs = nowMs;
  }

  freeSlots(): number {
    return Math.max(0, this.#limit() - this.#taken);
  }

  /** @param startMs current time; must be passed to `release` */
  acquire(startMs: number): void {
    if (this.#isIdle(startMs)) {
      this.#baseLimit = SLOW_START_INITIAL;
      this.#sinceMs = startMs;
    }
    this.#taken += 1;
    this.#startTimesSumMs += startMs;
  }

  release(startMs: number, succeeded: boolean): void {
    this.#taken -= 1;
    this.#startTimesSumMs -= startMs;
    this.#lastEndMs = this.#nowMs();
    if (succeeded) this.#baseLimit += 1;
  }

  /**
   * Returns the time at which another lane may find a slot: now, or one after another at the rate at which slots are
   * released. A request without a response takes at least as long as it has been in flight.
   * @param typicalMs usual duration of an attempt
   */
  nextStartAtMs(typicalMs: number): number {
    const now = this.#nowMs();
    if (this.freeSlots() > 0) return now;
    const limit = this.#limit();
    const meanMs = now - this.#startTimesSumMs / this.#taken;
    const gapMs = Math.max(typicalMs, meanMs) / limit;
    return this.#starts.next(now, limit < this.#max ? Math.min(gapMs, SLOW_START_STEP_MS) : gapMs);
  }

  #limit(): number {
    const now = this.#nowMs();
    if (this.#isIdle(now)) return Math.min(this.#max, SLOW_START_INITIAL);
    return Math.min(this.#max, this.#baseLimit + Math.floor((now - this.#sinceMs) / SLOW_START_STEP_MS));
  }

  #isIdle(now: number): boolean {
    return this.#taken === 0 && now - this.#lastEndMs > SLOW_START_RESET_MS;
  }
}
