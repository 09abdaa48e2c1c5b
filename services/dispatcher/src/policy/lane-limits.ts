import { DoubtfulSlots } from './doubtful-slots.ts';
import { type Lane, type LaneOutcome, type LaneState, LaneStates, Origins } from './lane-states.ts';

/** Attempts that share a limit, by who makes them. */
interface Pool {
  /** Of one lane at a time, while it answers. */
  readonly laneMax: number;
  /** Of all lanes together that do not answer. */
  readonly doubtful: DoubtfulSlots;
}

/** Leave for one attempt. Must be released, once. */
export interface Slot {
  readonly pool: Pool;
  readonly state: LaneState;
  readonly lane: Lane;
  readonly isDoubtful: boolean;
  /** The lane failed when it began. */
  readonly isProbe: boolean;
  readonly startMs: number;
}

export interface LaneLimitsOptions {
  /** Jobs that each worker may have in flight. */
  concurrency: number;
  /** Before the first retry: a lane is probed at least as often as one of its deliveries would be. */
  retryBaseDelayMs?: number;
  nowMs?: () => number;
}

const IN_PLACE_MAX = 128;
const QUEUED_MAX = 64;
/** Until its first attempt has ended well. */
const UNPROVEN_MAX = 16;
const SILENT_MAX = 4;
/** Of a lane that begins to fail; twice as long after each probe that fails too. */
const PROBE_GAP_MS = 100;
const PROBE_GAP_MAX_MS = 5_000;
/** What all lanes that fail cost together is bounded. */
const PROBE_GAP_OF_ALL_MS = 10;
/** Lanes do not come at the moment that was meant for them: some may be probed together, if none was before. */
const PROBES_SAVED_MS = 100;
const WAIT_MIN_MS = 100;
const WAIT_MAX_MS = 30_000;

/**
 * How many attempts a lane (a subscription) may have in flight, so that none can hold what all need
 * (docs/adr/0032-lanes.md). Generously while it answers; one at a time, as a probe, while it fails, and from
 * there one more with each success. First attempts are made in place, by the event's job, as long as nothing of the
 * lane is parked; what is parked is attempted by the lane's own job. An origin is a generous bound over its lanes.
 */
export class LaneLimits {
  readonly #nowMs: () => number;
  readonly #states: LaneStates;
  readonly #origins = new Origins();
  readonly #inPlace: Pool;
  readonly #queued: Pool;
  readonly #probeGapMaxMs: number;
  #nextProbeAtMs = 0;
  #nextFailingTurnAtMs = 0;
  #nextDoubtfulSlotAtMs = 0;

  constructor(options: LaneLimitsOptions) {
    const { concurrency, retryBaseDelayMs = PROBE_GAP_MAX_MS, nowMs = () => performance.now() } = options;
    this.#nowMs = nowMs;
    this.#probeGapMaxMs = Math.min(Math.max(PROBE_GAP_MS, retryBaseDelayMs), PROBE_GAP_MAX_MS);
    this.#states = new LaneStates(nowMs);
    // A quarter of the event jobs and half of the queued ones: the rest is for lanes that answer.
    const doubtful = (share: number) => new DoubtfulSlots(Math.ceil(concurrency / share), nowMs);
    this.#inPlace = { laneMax: IN_PLACE_MAX, doubtful: doubtful(4) };
    this.#queued = { laneMax: QUEUED_MAX, doubtful: doubtful(2) };
  }

  /** Whether a first attempt would find no slot now: its delivery may as well be committed as parked. */
  isShut(lane: Lane): boolean {
    const state = this.#stateOf(lane);
    return this.#hasJob(state) || this.#room(this.#inPlace, state) === 0 || !this.#origins.hasRoom(lane);
  }

  /** For a first attempt in place; null: it is parked. */
  acquireInPlace(lane: Lane): Slot | null {
    const state = this.#stateOf(lane);
    return this.#hasJob(state) ? null : this.#acquire(this.#inPlace, state, lane);
  }

  /** For a retry, or for one that was parked. */
  acquireQueued(lane: Lane): Slot | null {
    return this.#acquire(this.#queued, this.#stateOf(lane), lane);
  }

  release({ pool, state, lane, isDoubtful, isProbe, startMs }: Slot, outcome: LaneOutcome): void {
    const now = this.#nowMs();
    if (isDoubtful) pool.doubtful.giveBack(startMs, outcome === 'succeeded');
    this.#states.end(state, { succeeded: outcome === 'succeeded', tookMs: now - startMs });
    // What was in flight together when the endpoint went away has failed together, and is no probe.
    if (outcome === 'succeeded') state.probesFailed = 0;
    else if (isProbe) state.probesFailed += 1;
    const gapMs = Math.min(PROBE_GAP_MS * 2 ** state.probesFailed, this.#probeGapMaxMs);
    state.nextProbeAtMs = now + gapMs;
    this.#origins.leave(lane, outcome, state.nextProbeAtMs);
  }

  /** While its job works on a lane, or is about to come again, nothing new overtakes what is parked. */
  beginDraining(subscriptionId: string): void {
    this.#states.of(subscriptionId).isDraining = true;
  }

  /** @param againMs until the lane's job comes again; null when it does not, as far as is known */
  endDraining(subscriptionId: string, againMs: number | null): void {
    const state = this.#states.of(subscriptionId);
    state.isDraining = false;
    this.#giveBackProbe(state);
    state.turnAtMs = againMs === null ? 0 : this.#nowMs() + againMs;
  }

  /**
   * In how many milliseconds a lane that has something parked should have its turn; null while it has its job for certain:
   * it is at work here, or was told here when to come. Of a thousand lanes that fail, or that nobody has heard of, none needs
   * a turn that would find no room.
   */
  untilTurnMs(subscriptionId: string): number | null {
    const state = this.#known(subscriptionId);
    if (this.#hasJob(state)) return null;
    if (this.#states.classOf(state) === 'answering' || this.#room(this.#queued, state) > 0) return 0;
    const delayMs = this.waitMs(subscriptionId);
    state.turnAtMs = this.#nowMs() + delayMs;
    return delayMs;
  }

  /**
   * How many attempts the lane's job may begin now, as far as the lane decides. A probe is promised: of a thousand lanes
   * that fail, those that may have none must not even read what they would send.
   */
  room(subscriptionId: string): number {
    const state = this.#known(subscriptionId);
    const room = this.#room(this.#queued, state);
    if (room > 0 && this.#states.classOf(state) === 'failing') this.#promiseProbe(state);
    return room;
  }

  /** How long a lane waits that found no room: until a slot may be free, and never longer than half a minute. */
  waitMs(subscriptionId: string): number {
    const state = this.#known(subscriptionId);
    const now = this.#nowMs();
    const kind = this.#states.classOf(state);
    let atMs = now + (state.inFlight === 0 ? 0 : state.heldMs);
    if (kind === 'failing') {
      // One after another too: of a thousand that all come back for their probe, ten in a second would find it free.
      this.#nextFailingTurnAtMs = Math.max(now, this.#nextFailingTurnAtMs) + PROBE_GAP_OF_ALL_MS;
      atMs = Math.max(atMs, state.nextProbeAtMs, this.#nextFailingTurnAtMs);
      this.#nextFailingTurnAtMs = Math.min(this.#nextFailingTurnAtMs, now + WAIT_MAX_MS);
      if (state.isServerUnreachable) atMs = Math.max(atMs, this.#origins.nextTurnMs(state.origin, now));
    }
    if (kind !== 'answering' && this.#queued.doubtful.free() === 0) {
      // One after another: all at once would only wait again.
      const paceMs = this.#queued.doubtful.paceMs(state.heldMs);
      this.#nextDoubtfulSlotAtMs = Math.max(now, this.#nextDoubtfulSlotAtMs) + paceMs;
      atMs = Math.max(atMs, this.#nextDoubtfulSlotAtMs);
      this.#nextDoubtfulSlotAtMs = Math.min(this.#nextDoubtfulSlotAtMs, now + WAIT_MAX_MS);
    }
    return Math.ceil(Math.min(Math.max(atMs - now, WAIT_MIN_MS), WAIT_MAX_MS));
  }

  #stateOf({ subscriptionId, origin }: Lane): LaneState {
    this.#states.of(subscriptionId).origin = origin;
    return this.#known(subscriptionId);
  }

  #known(subscriptionId: string): LaneState {
    const state = this.#states.of(subscriptionId);
    if (state.origin === null) return state;
    state.isServerProven = this.#origins.isProven(state.origin);
    state.isServerUnreachable = this.#origins.isUnreachable(state.origin);
    return state;
  }

  #hasJob({ isDraining, turnAtMs }: LaneState): boolean {
    return isDraining || turnAtMs > this.#nowMs();
  }

  #acquire(pool: Pool, state: LaneState, lane: Lane): Slot | null {
    if (this.#room(pool, state) === 0 || !this.#origins.hasRoom(lane)) return null;
    const kind = this.#states.classOf(state);
    const isDoubtful = kind !== 'answering';
    const startMs = this.#nowMs();
    if (isDoubtful) pool.doubtful.take(startMs);
    if (kind === 'failing') this.#promiseProbe(state);
    state.hasProbe = false;
    this.#origins.enter(lane);
    this.#states.begin(state);
    return { pool, state, lane, isDoubtful, isProbe: kind === 'failing', startMs };
  }

  #room(pool: Pool, state: LaneState): number {
    const kind = this.#states.classOf(state);
    const free = Math.max(0, this.#limitOf(pool, state) - state.inFlight);
    if (kind === 'answering') return free;
    if (kind === 'failing' && !this.#mayProbe(state)) return 0;
    return Math.min(free, pool.doubtful.free());
  }

  #promiseProbe(state: LaneState): void {
    if (state.hasProbe) return;
    const now = this.#nowMs();
    this.#nextProbeAtMs = Math.max(now, this.#nextProbeAtMs) + PROBE_GAP_OF_ALL_MS;
    // Until it has ended, and has told when the next one may be.
    if (state.isServerUnreachable) this.#origins.probeNotBefore(state.origin, now + this.#probeGapMaxMs);
    state.hasProbe = true;
  }

  /** Nothing was left to send, or nothing that may be sent any more. */
  #giveBackProbe(state: LaneState): void {
    if (!state.hasProbe) return;
    this.#nextProbeAtMs -= PROBE_GAP_OF_ALL_MS;
    this.#origins.probeNotBefore(state.origin, this.#nowMs());
    state.hasProbe = false;
  }

  #mayProbe({ hasProbe, nextProbeAtMs, isServerUnreachable, origin }: LaneState): boolean {
    if (hasProbe) return true;
    const now = this.#nowMs();
    if (isServerUnreachable && !this.#origins.mayProbe(origin, now)) return false;
    return nextProbeAtMs <= now && this.#nextProbeAtMs < now + PROBES_SAVED_MS;
  }

  #limitOf({ laneMax }: Pool, state: LaneState): number {
    switch (this.#states.classOf(state)) {
      case 'answering':
        return state.hasSucceeded ? Math.min(laneMax, state.window) : UNPROVEN_MAX;
      case 'unproven':
        return UNPROVEN_MAX;
      case 'silent':
        return Math.min(SILENT_MAX, state.window);
      case 'failing':
        return 1;
    }
  }
}
