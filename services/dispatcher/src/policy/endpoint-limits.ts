/**
 * How many attempts one endpoint may have in flight, so that none can hold what all need. First attempts are made in
 * place, by the event's job: generously while the endpoint answers, a few while that is open, none after many failures
 * in a row, when its deliveries go to the overflow queue from the start, until one of them succeeds. Attempts from that
 * queue have places of their own, which are shared the same way; what finds none is put off.
 */
export interface EndpointShares {
  /** For a first attempt in place; null: it belongs to the overflow queue. */
  takeInPlace(endpoint: string): Place | null;
  /** For an attempt from the queue, or when to come again. */
  takeQueued(endpoint: string): Place | { comeAgainInMs: number };
}

/** Must be ended, once. */
export interface Place {
  end(succeeded: boolean): void;
}

interface Limits {
  /** Attempts of one endpoint at a time. */
  of: Record<EndpointClass, number>;
  /** Of all endpoints together that are not answering: a thousand that never answer get no more. */
  doubtful: number;
}

export interface EndpointSharesOptions {
  /** Jobs that each worker has in hand at a time. */
  concurrency: number;
  nowMs?: () => number;
}

const REMEMBERED_MAX = 20_000;
const AGAIN_MIN_MS = 100;
const AGAIN_MAX_MS = 30_000;
const IN_PLACE = { answering: 128, unproven: 16, silent: 4, failing: 4, excluded: 0 };
const QUEUED = { answering: 64, unproven: 4, silent: 4, failing: 4, excluded: 4 };
/** From the queue, for an endpoint whose attempts end soon, even if badly: it holds nobody up. */
const QUEUED_QUICK = 16;
const QUICK_MS = 500;

export function createEndpointShares(options: EndpointSharesOptions): EndpointShares {
  const { concurrency, nowMs = () => performance.now() } = options;
  const states = createEndpointStates({ sizeMax: REMEMBERED_MAX, nowMs });
  // A quarter of the event jobs and half of the queued deliveries: the rest is for endpoints that answer.
  const inPlace = { limits: { of: IN_PLACE, doubtful: Math.ceil(concurrency / 4) }, doubtful: 0 };
  const queued = { limits: { of: QUEUED, doubtful: Math.ceil(concurrency / 2) }, doubtful: 0 };
  let nextDoubtfulTurnAtMs = 0;

  function shareOf(pool: { limits: Limits }, kind: EndpointClass, { heldMs }: EndpointState): number {
    const share = pool.limits.of[kind];
    return pool === queued && heldMs < QUICK_MS ? Math.max(share, QUEUED_QUICK) : share;
  }

  function take(pool: { limits: Limits; doubtful: number }, state: EndpointState): Place | null {
    const kind = states.classOf(state);
    if (state.inFlight >= shareOf(pool, kind, state)) return null;
    const isDoubtful = kind !== 'answering';
    if (isDoubtful && pool.doubtful >= pool.limits.doubtful) return null;
    if (isDoubtful) pool.doubtful += 1;
    states.begin(state);
    const startMs = nowMs();
    return {
      end(succeeded) {
        if (isDoubtful) pool.doubtful -= 1;
        states.end(state, { succeeded, tookMs: nowMs() - startMs });
      },
    };
  }

  /**
   * Deliveries that are put off come again one after another, at the pace at which places become free: all at once
   * they would only be put off again. The pace is that of the endpoint, and for doubtful ones that of all of them.
   */
  function comeAgainInMs(state: EndpointState): number {
    const now = nowMs();
    const isAnswering = states.classOf(state) === 'answering';
    const { heldMs } = state;
    const places = shareOf(queued, isAnswering ? 'answering' : 'failing', state);
    state.nextTurnAtMs = Math.max(now + AGAIN_MIN_MS, state.nextTurnAtMs + heldMs / places);
    let turnAtMs = state.nextTurnAtMs;
    if (!isAnswering) {
      nextDoubtfulTurnAtMs = Math.max(
        now + AGAIN_MIN_MS,
        nextDoubtfulTurnAtMs + heldMs / queued.limits.doubtful,
      );
      turnAtMs = Math.max(turnAtMs, nextDoubtfulTurnAtMs);
    }
    // However long the line is: an endpoint that comes back must not wait for the end of it.
    state.nextTurnAtMs = Math.min(state.nextTurnAtMs, now + AGAIN_MAX_MS);
    nextDoubtfulTurnAtMs = Math.min(nextDoubtfulTurnAtMs, now + AGAIN_MAX_MS);
    return Math.ceil(Math.min(turnAtMs - now, AGAIN_MAX_MS));
  }

  return {
    takeInPlace: (endpoint) => take(inPlace, states.of(endpoint)),
    takeQueued(endpoint) {
      const state = states.of(endpoint);
      return take(queued, state) ?? { comeAgainInMs: comeAgainInMs(state) };
    },
  };
}

/**
 * What is known of endpoints, from the attempts on them. `answering`: the latest ones succeeded. `unproven`: none has
 * yet. `silent`: others answer, and it has not for a while though requests are in flight. `failing`: several in a row
 * failed. `excluded`: many in a row failed.
 */
export type EndpointClass = 'answering' | 'unproven' | 'silent' | 'failing' | 'excluded';

export interface EndpointState {
  /** Attempts on their way, wherever they were begun. */
  inFlight: number;
  failuresInRow: number;
  hasSucceeded: boolean;
  /** When it answered last, or since when it has had something to answer. */
  heardAtMs: number;
  /** What an attempt that succeeds takes, as a moving average. */
  typicalMs: number;
  /** What any attempt takes, however it ends: how soon places become free. */
  heldMs: number;
  /** When the next of its deliveries that had to be put off is due. */
  nextTurnAtMs: number;
}

export interface EndpointStates {
  of(endpoint: string): EndpointState;
  classOf(state: EndpointState): EndpointClass;
  begin(state: EndpointState): void;
  /** Told of every attempt when it has ended. */
  end(state: EndpointState, ended: { succeeded: boolean; tookMs: number }): void;
}

const FAILING_AFTER = 3;
const EXCLUDED_AFTER = 10;
const SILENCE_MS = 500;
/** Of an endpoint's typical time: one that takes long is not silent while it does. */
const SILENCE_TYPICAL_TIMES = 3;
const TYPICAL_WEIGHT = 0.1;
const HELD_WEIGHT = 0.5;
/** Before the first attempt has ended. */
const HELD_GUESS_MS = 200;

/** @param sizeMax endpoints remembered; of those with nothing in flight, the one heard of longest ago is forgotten */
export function createEndpointStates(options: { sizeMax: number; nowMs: () => number }): EndpointStates {
  const { sizeMax, nowMs } = options;
  const states = new Map<string, EndpointState>();
  /** Silence is measured against the others: while this process itself hangs, nobody is heard. */
  let anyHeardAtMs = nowMs();

  function make(endpoint: string): EndpointState {
    if (states.size >= sizeMax) forgetOne();
    const state: EndpointState = {
      inFlight: 0,
      failuresInRow: 0,
      hasSucceeded: false,
      heardAtMs: nowMs(),
      typicalMs: 0,
      heldMs: HELD_GUESS_MS,
      nextTurnAtMs: 0,
    };
    states.set(endpoint, state);
    return state;
  }

  function forgetOne(): void {
    for (const [endpoint, { inFlight }] of states) {
      if (inFlight > 0) continue;
      states.delete(endpoint);
      return;
    }
  }

  function isSilent({ inFlight, heardAtMs, typicalMs }: EndpointState): boolean {
    return inFlight > 0 && anyHeardAtMs - heardAtMs > Math.max(SILENCE_MS, SILENCE_TYPICAL_TIMES * typicalMs);
  }

  return {
    of(endpoint) {
      const known = states.get(endpoint);
      if (!known) return make(endpoint);
      // A Map keeps the order of insertion: the end is what was used last.
      states.delete(endpoint);
      states.set(endpoint, known);
      return known;
    },
    classOf(state) {
      if (state.failuresInRow >= EXCLUDED_AFTER) return 'excluded';
      if (state.failuresInRow >= FAILING_AFTER) return 'failing';
      if (isSilent(state)) return 'silent';
      return state.hasSucceeded ? 'answering' : 'unproven';
    },
    begin(state) {
      if (state.inFlight === 0) state.heardAtMs = nowMs();
      state.inFlight += 1;
    },
    end(state, { succeeded, tookMs }) {
      state.inFlight -= 1;
      state.heardAtMs = nowMs();
      anyHeardAtMs = state.heardAtMs;
      state.heldMs += (tookMs - state.heldMs) * HELD_WEIGHT;
      state.failuresInRow = succeeded ? 0 : state.failuresInRow + 1;
      if (!succeeded) return;
      state.typicalMs += (tookMs - state.typicalMs) * (state.hasSucceeded ? TYPICAL_WEIGHT : 1);
      state.hasSucceeded = true;
      state.nextTurnAtMs = 0;
    },
  };
}
