/**
 * How many first attempts one endpoint may have in flight, so that a slow one cannot hold every event job. Generous
 * while it answers; a few once it fails; none in place after many failures in a row, when its deliveries go to the
 * overflow queue from the start, until one of them succeeds.
 */
export interface EndpointShares {
  /** Takes a place, or answers false: the delivery belongs to the overflow queue. */
  tryAcquire(endpoint: string): boolean;
  release(endpoint: string): void;
  /** Told of every attempt, first or retried. */
  report(endpoint: string, succeeded: boolean): void;
}

const HEALTHY_SHARE = 128;
const FAILING_SHARE = 4;
const FAILING_AFTER = 3;
const EXCLUDED_AFTER = 10;

interface EndpointState {
  inFlight: number;
  failuresInRow: number;
}

export function createEndpointShares(): EndpointShares {
  const states = new Map<string, EndpointState>();

  /** Healthy and idle is the default, so it needs no entry: the map holds what is busy or failing. */
  function keep(endpoint: string, state: EndpointState): void {
    if (state.inFlight === 0 && state.failuresInRow === 0) states.delete(endpoint);
    else states.set(endpoint, state);
  }
  const stateOf = (endpoint: string) => states.get(endpoint) ?? { inFlight: 0, failuresInRow: 0 };

  return {
    tryAcquire(endpoint) {
      const state = stateOf(endpoint);
      if (state.inFlight >= shareOf(state.failuresInRow)) return false;
      state.inFlight += 1;
      keep(endpoint, state);
      return true;
    },
    release(endpoint) {
      const state = stateOf(endpoint);
      state.inFlight -= 1;
      keep(endpoint, state);
    },
    report(endpoint, succeeded) {
      const state = stateOf(endpoint);
      state.failuresInRow = succeeded ? 0 : state.failuresInRow + 1;
      keep(endpoint, state);
    },
  };
}

function shareOf(failuresInRow: number): number {
  if (failuresInRow >= EXCLUDED_AFTER) return 0;
  return failuresInRow >= FAILING_AFTER ? FAILING_SHARE : HEALTHY_SHARE;
}
