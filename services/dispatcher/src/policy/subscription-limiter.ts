import { type Lane, type LaneOutcome, Origins } from './origins.ts';
import { ProbeBudget } from './probe-budget.ts';
import { RecentResults } from './recent-results.ts';
import type { RequestsInFlight, SlowStartSlots } from './requests-in-flight.ts';

/*
 * Limiter of a subscription, one of the four admission controls on the path of an event
 * (docs/architecture.md#admission-controls): its states, and the number of attempts that it may have in flight. The
 * first state whose condition holds applies.
 *
 * | State | Condition | First attempts | Retries and deferred deliveries |
 * |---|---|---|---|
 * | blocked | `Retry-After` of a response has not passed (record/blocks.ts) | 0 | 0; a probe every 60 s, claimed in PostgreSQL; a manual redelivery is one of 16, or tries again in 1 s |
 * | failing | 3 attempts or more, and none of the last 20 succeeded; or the last 3 connections to its server failed | 1, a probe | 1, a probe, 100 ms after the previous one; each probe that fails doubles this wait, up to 5 s |
 * | silent | requests are in flight, but none has ended for 0.5 s and 3 times the usual duration, while some at other endpoints have | as open, at most 4 | as open, at most 4 |
 * | unproven | none of its last 20 attempts has succeeded, nor the latest one at its server | 16 | 16 |
 * | open | otherwise | 128 × its success rate over the last 20 attempts, and 96 × while it has its job; 16 before the first success | 64 × its success rate; 16 before the first success |
 *
 * The limit of 128 holds for both kinds together. While it has its job, a subscription has first attempts only if it is
 * open and has succeeded. Each attempt that ends adds its result. A success leaves `failing` with a low success rate,
 * such as 1/20, and thus a low limit, which grows with each further success (slow start). Failing subscriptions share a
 * ProbeBudget, and those of one unreachable server one probe at a time. requests-in-flight.ts limits silent, unproven
 * and failing subscriptions together, and all of a server.
 */
type LaneClass = 'blocked' | 'failing' | 'silent' | 'unproven' | 'open';

/** Attempts that share a limit: first attempts, or retries and deferred deliveries. */
interface Pool {
  readonly laneMax: number;
  readonly slowStart: SlowStartSlots;
}

class LaneState {
  inFlight = 0;
  /** First attempts among those in flight. */
  firstAttemptsInFlight = 0;
  readonly recent = new RecentResults();
  /** Null until the lane is read. */
  origin: string | null = null;
  blockedUntilMs = 0;
  /** Number of changes of the block by this process that are not on record yet. */
  unrecordedBlocks = 0;
  /** Time at which the latest attempt ended, or the first one in flight began if that is later. */
  lastResponseAtMs: number;
  /** Duration of attempts that succeed, as a moving average. */
  meanSuccessMs = 0;
  /** Duration of all attempts, as a moving average with an estimated initial value. */
  meanDurationMs = 200;
  nextProbeAtMs = 0;
  /** Number of consecutive failed probes. */
  probesFailed = 0;
  /** Whether its job is active in this process. */
  isDraining = false;
  /** Time of the next run of its job, which is delayed in the queue until then. */
  jobStartsAtMs = 0;

  constructor(nowMs: number) {
    this.lastResponseAtMs = nowMs;
  }
}

/** Permits one attempt. The caller must release it exactly once. */
export interface Slot {
  readonly pool: Pool;
  readonly state: LaneState;
  readonly lane: Lane;
  /** State of the lane when the attempt began. */
  readonly kind: LaneClass;
  readonly startMs: number;
}

export interface SubscriptionLimiterOptions {
  /** Limits attempts over all subscriptions. */
  requests: Pick<RequestsInFlight, 'slowStart' | 'servers'>;
  /** Wait before the first retry, an upper limit of the wait between probes of a failing lane. */
  retryBaseDelayMs?: number;
  nowMs?: () => number;
}

const LANE_MAX = 128;
/** Limit of first attempts while the lane's job runs or is scheduled, which uses the remaining slots. */
const WITH_JOB_MAX = 96;
const QUEUED_MAX = 64;
const UNPROVEN_MAX = 16;
const SILENT_MAX = 4;
const FAILING_AFTER = 3;
const PROBE_GAP_MS = 100;
const PROBE_GAP_MAX_MS = 5_000;
const WAIT_MIN_MS = 100;
const WAIT_MAX_MS = 30_000;
const STATES_MAX = 50_000;
const SILENCE_MS = 500;
const SILENCE_MEAN_FACTOR = 3;
const SUCCESS_WEIGHT = 0.1;
const DURATION_WEIGHT = 0.5;

/** Limits the attempts of each lane (subscription) in flight in this process (docs/adr/0063-limiter-of-a-subscription.md). */
export class SubscriptionLimiter {
  readonly #nowMs: () => number;
  /** Least recently used first. Not an LRUCache, because lanes with attempts in flight must not be evicted. */
  readonly #states = new Map<string, LaneState>();
  readonly #origins = new Origins();
  readonly #servers: RequestsInFlight['servers'];
  readonly #probes = new ProbeBudget();
  readonly #firstAttempts: Pool;
  readonly #queued: Pool;
  readonly #probeGapMaxMs: number;
  /** End of the latest attempt at any endpoint. Silence is relative to it, because this process may be suspended. */
  #latestResponseAtMs: number;

  constructor({ requests, retryBaseDelayMs, nowMs = () => performance.now() }: SubscriptionLimiterOptions) {
    this.#nowMs = nowMs;
    this.#latestResponseAtMs = nowMs();
    const gapMaxMs = Math.max(PROBE_GAP_MS, retryBaseDelayMs ?? PROBE_GAP_MAX_MS);
    this.#probeGapMaxMs = Math.min(gapMaxMs, PROBE_GAP_MAX_MS);
    this.#servers = requests.servers;
    this.#firstAttempts = { laneMax: LANE_MAX, slowStart: requests.slowStart.firstAttempts };
    this.#queued = { laneMax: QUEUED_MAX, slowStart: requests.slowStart.queued };
  }

  /** Whether a first attempt would find no slot now, so that its delivery can be committed as deferred. */
  isSaturated(lane: Lane): boolean {
    this.update(lane);
    return this.#countFreeFirstAttemptSlots(this.#stateForLane(lane)) === 0 || !this.#servers.isFree(lane);
  }

  /** Takes a slot for a first attempt; null if there is none. Must follow `isSaturated`, which calls `update`. */
  acquireFirst(lane: Lane): Slot | null {
    const state = this.#stateForLane(lane);
    return this.#begin(this.#firstAttempts, state, lane, this.#countFreeFirstAttemptSlots(state));
  }

  /** Estimates how long a first attempt waits for a slot behind others; infinite unless its lane is open and has succeeded. */
  expectedWaitMs(lane: Lane, waitersAhead: number): number {
    const state = this.#stateForLane(lane);
    if (!this.#isReliable(state)) return Number.POSITIVE_INFINITY;
    return (state.meanDurationMs * (waitersAhead + 1)) / inFlightMax('open', LANE_MAX, state);
  }

  /**
   * Takes a slot for a retry or a deferred delivery; null if there is none.
   * @param ignoresBlock true for a manual redelivery and for a probe of a blocked lane
   */
  acquireQueued(lane: Lane, ignoresBlock = false): Slot | null {
    this.update(lane);
    const state = this.#stateForLane(lane);
    const isExempt = ignoresBlock && this.#classify(state) === 'blocked';
    const freeSlots = isExempt ? UNPROVEN_MAX - state.inFlight : this.#countFreeSlots(this.#queued, state);
    return this.#begin(this.#queued, state, lane, freeSlots);
  }

  release({ pool, state, lane, kind, startMs }: Slot, outcome: LaneOutcome): void {
    const now = this.#nowMs();
    const succeeded = outcome === 'succeeded';
    if (kind !== 'open') pool.slowStart.release(startMs, succeeded);
    const durationMs = now - startMs;
    state.inFlight -= 1;
    if (pool === this.#firstAttempts) state.firstAttemptsInFlight -= 1;
    state.lastResponseAtMs = this.#latestResponseAtMs = now;
    state.recent.add(succeeded);
    state.meanDurationMs += (durationMs - state.meanDurationMs) * DURATION_WEIGHT;
    if (succeeded)
      state.meanSuccessMs +=
        (durationMs - state.meanSuccessMs) * (state.meanSuccessMs > 0 ? SUCCESS_WEIGHT : 1);
    // Attempts that were in flight together when the endpoint began to fail do not count as probes.
    if (succeeded) state.probesFailed = 0;
    else if (kind === 'failing') state.probesFailed += 1;
    state.nextProbeAtMs = now + Math.min(PROBE_GAP_MS * 2 ** state.probesFailed, this.#probeGapMaxMs);
    this.#origins.note(lane.origin, outcome, state.nextProbeAtMs);
    this.#servers.leave(lane);
  }

  /**
   * Takes over the lane's server (scheme, host and port), and its block as it was read from the record: the block only
   * if all changes of it by this process are on record.
   */
  update(lane: Lane): void {
    const state = this.#stateForLane(lane);
    if (state.unrecordedBlocks === 0) state.blockedUntilMs = this.#nowMs() + lane.blockedMs;
  }

  /** Blocks the lane, or ends its block with 0. The caller must call `endBlockChange` before it releases the slot. */
  beginBlockChange({ state }: Slot, blockedMs: number): void {
    state.unrecordedBlocks += 1;
    state.blockedUntilMs = this.#nowMs() + blockedMs;
  }

  /** Must be called once the change is recorded, or cannot be. */
  endBlockChange({ state }: Slot): void {
    state.unrecordedBlocks -= 1;
  }

  /** Must be called when a lane's job starts. First attempts then get fewer slots; none unless open with a success. */
  beginDraining(subscriptionId: string): void {
    this.#getState(subscriptionId).isDraining = true;
  }

  /** @param nextDelayMs milliseconds until the lane's job runs again; null if this process knows of no further run */
  endDraining(subscriptionId: string, nextDelayMs: number | null): void {
    const state = this.#getState(subscriptionId);
    state.isDraining = false;
    state.jobStartsAtMs = nextDelayMs === null ? 0 : this.#nowMs() + nextDelayMs;
  }

  /** Returns the delay of the job of a lane with deferred deliveries; null if this process knows that there is a job. */
  laneJobDelayMs(subscriptionId: string): number | null {
    const state = this.#getState(subscriptionId);
    if (this.#hasJob(state)) return null;
    if (this.#classify(state) === 'open' || this.#countFreeSlots(this.#queued, state) > 0) return 0;
    const delayMs = this.waitMs(subscriptionId);
    state.jobStartsAtMs = this.#nowMs() + delayMs;
    return delayMs;
  }

  /** Returns the number of the lane's slots that are free for its job now. */
  freeSlots(subscriptionId: string): number {
    return this.#countFreeSlots(this.#queued, this.#getState(subscriptionId));
  }

  /** Returns how long the job of a lane waits until a slot may be free: from 100 ms to half a minute. */
  waitMs(subscriptionId: string): number {
    const state = this.#getState(subscriptionId);
    const now = this.#nowMs();
    const kind = this.#classify(state);
    let atMs = now + (state.inFlight === 0 ? 0 : state.meanDurationMs);
    if (kind === 'failing' || kind === 'blocked') {
      const checkAtMs = Math.min(state.blockedUntilMs, now + this.#probeGapMaxMs);
      const startAtMs = Math.max(
        this.#probes.nextStartAtMs(now),
        this.#origins.nextStartAtMs(state.origin, now),
      );
      atMs = Math.max(atMs, startAtMs, kind === 'blocked' ? checkAtMs : state.nextProbeAtMs);
    }
    if (kind !== 'open' && kind !== 'blocked')
      atMs = Math.max(atMs, this.#queued.slowStart.nextStartAtMs(state.meanDurationMs));
    return Math.ceil(Math.min(Math.max(atMs - now, WAIT_MIN_MS), WAIT_MAX_MS));
  }

  #stateForLane({ subscriptionId, origin }: Lane): LaneState {
    const state = this.#getState(subscriptionId);
    state.origin = origin;
    return state;
  }

  #getState(subscriptionId: string): LaneState {
    const state = this.#states.get(subscriptionId) ?? new LaneState(this.#nowMs());
    // A Map keeps the order of insertion, so the most recently used state is last.
    if (!this.#states.delete(subscriptionId) && this.#states.size >= STATES_MAX) this.#evict();
    this.#states.set(subscriptionId, state);
    return state;
  }

  #evict(): void {
    for (const [subscriptionId, { inFlight, isDraining }] of this.#states)
      if (inFlight === 0 && !isDraining && this.#states.delete(subscriptionId)) return;
  }

  #classify(state: LaneState): LaneClass {
    if (state.blockedUntilMs > this.#nowMs()) return 'blocked';
    const { count, hasSuccess } = state.recent;
    if (count >= FAILING_AFTER && !hasSuccess) return 'failing';
    if (this.#origins.isUnreachable(state.origin)) return 'failing';
    if (this.#isSilent(state)) return 'silent';
    return hasSuccess || this.#origins.isProven(state.origin) ? 'open' : 'unproven';
  }

  #isSilent({ inFlight, lastResponseAtMs, meanSuccessMs }: LaneState): boolean {
    const silenceMs = Math.max(SILENCE_MS, SILENCE_MEAN_FACTOR * meanSuccessMs);
    return inFlight > 0 && this.#latestResponseAtMs - lastResponseAtMs > silenceMs;
  }

  #hasJob({ isDraining, jobStartsAtMs }: LaneState): boolean {
    return isDraining || jobStartsAtMs > this.#nowMs();
  }

  #isReliable(state: LaneState): boolean {
    return state.recent.hasSuccess && this.#classify(state) === 'open';
  }

  #begin(pool: Pool, state: LaneState, lane: Lane, freeSlots: number): Slot | null {
    if (freeSlots <= 0 || !this.#servers.isFree(lane)) return null;
    const kind = this.#classify(state);
    const startMs = this.#nowMs();
    if (kind !== 'open') pool.slowStart.acquire(startMs);
    if (kind === 'failing') {
      this.#probes.acquire(startMs);
      // Prevents further probes until the result of this one determines the time of the next.
      this.#origins.delayProbe(state.origin, startMs + this.#probeGapMaxMs);
    }
    this.#servers.enter(lane);
    if (state.inFlight === 0) state.lastResponseAtMs = startMs;
    state.inFlight += 1;
    if (pool === this.#firstAttempts) state.firstAttemptsInFlight += 1;
    return { pool, state, lane, kind, startMs };
  }

  #countFreeFirstAttemptSlots(state: LaneState): number {
    if (!this.#hasJob(state)) return this.#countFreeSlots(this.#firstAttempts, state);
    return this.#isReliable(state) ? this.#countFreeSlots(this.#firstAttempts, state, WITH_JOB_MAX) : 0;
  }

  #countFreeSlots(pool: Pool, state: LaneState, laneMax = pool.laneMax): number {
    const kind = this.#classify(state);
    const poolInFlight =
      pool === this.#firstAttempts
        ? state.firstAttemptsInFlight
        : state.inFlight - state.firstAttemptsInFlight;
    const poolFree = inFlightMax(kind, laneMax, state) - poolInFlight;
    const free = Math.max(0, Math.min(poolFree, inFlightMax(kind, LANE_MAX, state) - state.inFlight));
    if (kind === 'open' || free === 0) return free;
    if (kind === 'failing' && !this.#canProbe(state)) return 0;
    return Math.min(free, pool.slowStart.freeSlots());
  }

  #canProbe({ nextProbeAtMs, origin }: LaneState): boolean {
    const now = this.#nowMs();
    return nextProbeAtMs <= now && this.#probes.isFree(now) && this.#origins.canProbe(origin, now);
  }
}

function inFlightMax(kind: LaneClass, laneMax: number, { recent }: LaneState): number {
  if (kind === 'blocked') return 0;
  if (kind === 'failing') return 1;
  const max = recent.hasSuccess ? Math.ceil(laneMax * recent.successRate) : UNPROVEN_MAX;
  return kind === 'silent' ? Math.min(SILENT_MAX, max) : max;
}
