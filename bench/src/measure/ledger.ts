/** A delivery that must arrive: an event, and the URL path of one subscription's endpoint. */
export interface Expected {
  eventId: string;
  path: string;
  /** Time at which the event was to be published, on the shared clock. */
  intendedMs: number;
}

export interface Arrivals {
  eventIds: readonly string[];
  paths: readonly string[];
  /** Arrival time of each request, on the shared clock. */
  timesMs: ArrayLike<number>;
}

/** Number of deliveries that did not arrive, by the reason that the service reports. */
export type Explained = Record<string, number>;

export interface Balance {
  published: number;
  delivered: number;
  explained: number;
  /** Requests beyond the first one of their delivery. */
  repeated: number;
  /** Deliveries that neither arrived nor are explained. */
  missing: number;
  /** Requests that belong to no published delivery. */
  unknown: number;
  /** Time from the intended time to the first arrival of each delivery that arrived, in milliseconds. */
  latenciesMs: Float64Array;
}

/**
 * Compares the published deliveries with those that arrived. A run is valid only if the result satisfies {@link
 * isBalanced}.
 */
export function balance(
  expected: readonly Expected[],
  arrivals: Arrivals,
  explained: Explained = {},
): Balance {
  const intended = new Map(
    expected.map(({ eventId, path, intendedMs }) => [keyOf(eventId, path), intendedMs]),
  );
  const seen = new Set<string>();
  const latenciesMs: number[] = [];
  let repeated = 0;
  let unknown = 0;
  arrivals.eventIds.forEach((eventId, index) => {
    const key = keyOf(eventId, arrivals.paths[index] ?? '');
    const intendedMs = intended.get(key);
    if (intendedMs === undefined) unknown += 1;
    else if (seen.has(key)) repeated += 1;
    else {
      seen.add(key);
      latenciesMs.push((arrivals.timesMs[index] as number) - intendedMs);
    }
  });
  const explainedCount = Object.values(explained).reduce((sum, count) => sum + count, 0);
  return {
    published: intended.size,
    delivered: seen.size,
    explained: explainedCount,
    repeated,
    missing: intended.size - seen.size - explainedCount,
    unknown,
    latenciesMs: Float64Array.from(latenciesMs),
  };
}

/** Returns the balance of accepted events that are stored but not delivered. */
export function acceptedBalance(accepted: number, missing: number): Balance {
  return {
    published: accepted,
    delivered: 0,
    explained: accepted - missing,
    repeated: 0,
    missing: Math.max(0, missing),
    unknown: Math.max(0, -missing),
    latenciesMs: new Float64Array(),
  };
}

/** Returns the sum of the balances of several measurements of one case. */
export function sumBalances(balances: readonly Balance[]): Balance {
  const sum = (field: Exclude<keyof Balance, 'latenciesMs'>) =>
    balances.reduce((total, balance) => total + balance[field], 0);
  return {
    ...{ published: sum('published'), delivered: sum('delivered'), explained: sum('explained') },
    ...{ repeated: sum('repeated'), missing: sum('missing'), unknown: sum('unknown') },
    latenciesMs: Float64Array.from(balances.flatMap(({ latenciesMs }) => [...latenciesMs])),
  };
}

export function isBalanced({ missing, repeated, unknown }: Balance): boolean {
  return missing === 0 && repeated === 0 && unknown === 0;
}

function keyOf(eventId: string, path: string): string {
  return `${eventId} ${path}`;
}
