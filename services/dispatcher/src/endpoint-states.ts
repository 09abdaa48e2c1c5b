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
