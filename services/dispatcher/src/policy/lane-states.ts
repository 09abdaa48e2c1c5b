import { LRUCache } from 'lru-cache';

/** Where an attempt is made: the subscription, whose it is, and the server behind its URL. */
export interface Lane {
  subscriptionId: string;
  accountId: number;
  /** Scheme, host and port. */
  origin: string;
}

/**
 * What is known of a lane, from the attempts on it. `answering`: the latest ones succeeded. `unproven`: none has yet, nor
 * one of another lane on its server.
 * `silent`: others answer, and it has not for a while though requests are in flight. `failing`: several in a row failed,
 * or several connections to its server did, whoever's they were.
 */
export type LaneClass = 'answering' | 'unproven' | 'silent' | 'failing';

export interface LaneState {
  /** Attempts on their way, wherever they were begun. */
  inFlight: number;
  failuresInRow: number;
  hasSucceeded: boolean;
  /** As it was last seen; null until then. */
  origin: string | null;
  /** Others on its server have: that it is new makes it no suspect. */
  isServerProven: boolean;
  /** Nobody can connect to its server. */
  isServerUnreachable: boolean;
  /** How many it may have in flight: after it failed one more with each success, so that it doubles with each round. */
  window: number;
  /** When it answered last, or since when it has had something to answer. */
  heardAtMs: number;
  /** What an attempt that succeeds takes, as a moving average. */
  typicalMs: number;
  /** What any attempt takes, however it ends: how soon slots become free. */
  heldMs: number;
  /** When it may be probed again, while it fails. */
  nextProbeAtMs: number;
  /** In a row. */
  probesFailed: number;
  /** Its job was promised the next probe, while it reads what to send. */
  hasProbe: boolean;
  /** Its own job is at work here. */
  isDraining: boolean;
  /** When its own job comes again, which waits in the queue until then. */
  turnAtMs: number;
}

const REMEMBERED_MAX = 50_000;
/** Failures in a row. */
const FAILING_AFTER = 3;
const WINDOW_MAX = 128;
const SILENCE_MS = 500;
/** Of a lane's typical time: one that takes long is not silent while it does. */
const SILENCE_TYPICAL_TIMES = 3;
const TYPICAL_WEIGHT = 0.1;
const HELD_WEIGHT = 0.5;
/** Before the first attempt has ended. */
const HELD_GUESS_MS = 200;

export class LaneStates {
  readonly #nowMs: () => number;
  /** Least recently used first. No lru-cache: what has attempts in flight must stay, and that one cannot pass over it. */
  readonly #states = new Map<string, LaneState>();
  /** Silence is measured against the others: while this process itself hangs, nobody is heard. */
  #anyHeardAtMs: number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#anyHeardAtMs = nowMs();
  }

  of(subscriptionId: string): LaneState {
    const known = this.#states.get(subscriptionId);
    if (!known) return this.#make(subscriptionId);
    // A Map keeps the order of insertion: the end is what was used last.
    this.#states.delete(subscriptionId);
    this.#states.set(subscriptionId, known);
    return known;
  }

  classOf(state: LaneState): LaneClass {
    if (state.failuresInRow >= FAILING_AFTER || state.isServerUnreachable) return 'failing';
    if (this.#isSilent(state)) return 'silent';
    return state.hasSucceeded || state.isServerProven ? 'answering' : 'unproven';
  }

  begin(state: LaneState): void {
    if (state.inFlight === 0) state.heardAtMs = this.#nowMs();
    state.inFlight += 1;
  }

  end(state: LaneState, { succeeded, tookMs }: { succeeded: boolean; tookMs: number }): void {
    state.inFlight -= 1;
    state.heardAtMs = this.#nowMs();
    this.#anyHeardAtMs = state.heardAtMs;
    state.heldMs += (tookMs - state.heldMs) * HELD_WEIGHT;
    if (!succeeded) {
      state.failuresInRow += 1;
      if (state.failuresInRow >= FAILING_AFTER) state.window = 1;
      return;
    }
    state.failuresInRow = 0;
    state.window = Math.min(WINDOW_MAX, state.window + 1);
    state.typicalMs += (tookMs - state.typicalMs) * (state.hasSucceeded ? TYPICAL_WEIGHT : 1);
    state.hasSucceeded = true;
  }

  #make(subscriptionId: string): LaneState {
    if (this.#states.size >= REMEMBERED_MAX) this.#forgetOne();
    const state: LaneState = {
      inFlight: 0,
      failuresInRow: 0,
      hasSucceeded: false,
      origin: null,
      isServerProven: false,
      isServerUnreachable: false,
      window: WINDOW_MAX,
      heardAtMs: this.#nowMs(),
      typicalMs: 0,
      heldMs: HELD_GUESS_MS,
      nextProbeAtMs: 0,
      probesFailed: 0,
      hasProbe: false,
      isDraining: false,
      turnAtMs: 0,
    };
    this.#states.set(subscriptionId, state);
    return state;
  }

  #forgetOne(): void {
    for (const [subscriptionId, { inFlight, isDraining }] of this.#states) {
      if (inFlight > 0 || isDraining) continue;
      this.#states.delete(subscriptionId);
      return;
    }
  }

  #isSilent({ inFlight, heardAtMs, typicalMs }: LaneState): boolean {
    const silenceMs = Math.max(SILENCE_MS, SILENCE_TYPICAL_TIMES * typicalMs);
    return inFlight > 0 && this.#anyHeardAtMs - heardAtMs > silenceMs;
  }
}

/** How an attempt ended, for the limits. */
export type LaneOutcome = 'succeeded' | 'failed' | 'not_connected';

/** By size: with a `max` the places of all are made at once, though most dispatchers know a few. */
const PROVEN_OPTIONS = { maxSize: 20_000, sizeCalculation: () => 1 };
const UNREACHABLE_AFTER = 3;
/** Attempts in flight at one server at most. */
const ORIGIN_MAX = 4_096;

/** Lanes of a server that nobody can connect to come back so far apart: a thousand within half a minute. */
const TURN_GAP_MS = 30;
const TURNS_WITHIN_MS = 30_000;

/** A server whose latest connections failed. */
interface Unconnected {
  /** In a row. */
  failures: number;
  nextProbeAtMs: number;
  /** When the lane that asked last comes back. */
  lastTurnAtMs: number;
}

/**
 * The bound over the lanes of an origin, shared between accounts: an account may have there as many attempts in flight
 * as are still free, so that one alone gets half, two a third each, and there is always room for one that comes new.
 */
export class Origins {
  readonly #proven = new LRUCache<string, true>(PROVEN_OPTIONS);
  readonly #unconnected = new LRUCache<string, Unconnected>(PROVEN_OPTIONS);
  readonly #inFlight = new Map<string, { all: number; byAccount: Map<number, number> }>();

  hasRoom({ origin, accountId }: Lane): boolean {
    const known = this.#inFlight.get(origin);
    return !known || (known.byAccount.get(accountId) ?? 0) < ORIGIN_MAX - known.all;
  }

  enter({ origin, accountId }: Lane): void {
    const known = this.#inFlight.get(origin) ?? { all: 0, byAccount: new Map<number, number>() };
    this.#inFlight.set(origin, known);
    known.all += 1;
    known.byAccount.set(accountId, (known.byAccount.get(accountId) ?? 0) + 1);
  }

  /** Whether the latest attempt there that said something of the server succeeded. */
  isProven(origin: string): boolean {
    return this.#proven.get(origin) ?? false;
  }

  /** A server that answers, whatever it answers, takes connections. */
  isUnreachable(origin: string): boolean {
    return (this.#unconnected.get(origin)?.failures ?? 0) >= UNREACHABLE_AFTER;
  }

  /** Of a server that nobody can connect to: whether one of its lanes may try. The others learn of it from that one. */
  mayProbe(origin: string | null, nowMs: number): boolean {
    return (this.#of(origin)?.nextProbeAtMs ?? 0) <= nowMs;
  }

  probeNotBefore(origin: string | null, atMs: number): void {
    const unconnected = this.#of(origin);
    if (unconnected) unconnected.nextProbeAtMs = atMs;
  }

  /** When one more of its lanes comes back, not before the next probe: one after another. */
  nextTurnMs(origin: string | null, nowMs: number): number {
    const unconnected = this.#of(origin);
    if (!unconnected) return nowMs;
    const lastMs = Math.max(unconnected.lastTurnAtMs + TURN_GAP_MS, unconnected.nextProbeAtMs);
    unconnected.lastTurnAtMs = Math.min(lastMs, nowMs + TURNS_WITHIN_MS);
    return unconnected.lastTurnAtMs;
  }

  #of(origin: string | null): Unconnected | undefined {
    return origin === null ? undefined : this.#unconnected.get(origin);
  }

  /** @param nextProbeAtMs when the lane may be probed again, should it fail */
  leave({ origin, accountId }: Lane, outcome: LaneOutcome, nextProbeAtMs: number): void {
    if (outcome === 'succeeded') this.#proven.set(origin, true);
    else this.#proven.delete(origin);
    if (outcome === 'not_connected') {
      const { failures, lastTurnAtMs } = this.#unconnected.get(origin) ?? { failures: 0, lastTurnAtMs: 0 };
      this.#unconnected.set(origin, { failures: failures + 1, nextProbeAtMs, lastTurnAtMs });
    } else this.#unconnected.delete(origin);
    const known = this.#inFlight.get(origin);
    if (!known) return;
    known.all -= 1;
    const left = (known.byAccount.get(accountId) ?? 0) - 1;
    if (left > 0) known.byAccount.set(accountId, left);
    else known.byAccount.delete(accountId);
    if (known.all === 0) this.#inFlight.delete(origin);
  }
}
