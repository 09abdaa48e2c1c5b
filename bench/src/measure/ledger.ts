/** What was published, by delivery: an event on its way to one subscription's path. */
export interface Expected {
  eventId: string;
  path: string;
  /** On the shared clock. */
  intendedMs: number;
}

export interface Arrivals {
  eventIds: readonly string[];
  paths: readonly string[];
  /** On the shared clock. */
  timesMs: ArrayLike<number>;
}

/** What the service itself says of deliveries that did not arrive: how many, by what it says. */
export type Explained = Record<string, number>;

export interface Balance {
  published: number;
  delivered: number;
  explained: number;
  /** Arrived more than once, each beyond the first counted. */
  repeated: number;
  /** Neither arrived nor explained. */
  missing: number;
  /** Arrived and never published. */
  unknown: number;
  /** Of each delivery that arrived, from its intended time to its first arrival, in milliseconds. */
  latenciesMs: Float64Array;
}

/** A run counts only when its ledger balances: see {@link isBalanced}. */
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

/** Of what was accepted and is not to be delivered: it has to be stored. */
export function stored(accepted: number, missing: number): Balance {
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

/** The balance of several measurements that are one case. */
export function sumOf(balances: readonly Balance[]): Balance {
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
