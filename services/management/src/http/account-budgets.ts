import type { ManagementMetrics } from '../metrics.ts';
import { Bulkhead, bulkheadLimits } from './bulkhead.ts';

/**
 * Budgets of an account in one process. Each has separate slots, so that the requests of one kind delay neither those
 * of another kind nor those of other accounts.
 *
 * | Budget | Requests | Slots of an account | Of all accounts | In flight |
 * |---|---|---|---|---|
 * | requests | all below but tests; a report without `Idempotency-Key` takes no slot | 3/4 | pool - 2 | setting |
 * | slow_reads | reads that grow with the account, as lists and counts (`isSlowRead` of an endpoint) | 1 | 4 | 20 |
 * | endpoint_tests | tests of endpoints, each with at most one resolution of a name | 8 | no limit | 8 |
 * | large_bodies | requests and responses with more than 2 MiB of logs, until the response is sent | 2 | 4 | 20 |
 * | uploads | uploads of artifacts, until the file is stored | 8 | 16 | 32 |
 * | downloads | downloads of artifacts, until the file is sent; none waits for a slot | 16 | 64 | 16 |
 */
export interface AccountBudgets {
  requests: Pick<Bulkhead, 'run' | 'runWithoutSlot'>;
  slowReads: Pick<Bulkhead, 'run'>;
  endpointTests: Pick<Bulkhead, 'run' | 'requireCapacity'>;
  largeBodies: Pick<Bulkhead, 'run'>;
  uploads: Pick<Bulkhead, 'run' | 'requireCapacity'>;
  downloads: Pick<Bulkhead, 'run'>;
}

export const ACCOUNT_BUDGETS = [
  'requests',
  'slow_reads',
  'endpoint_tests',
  'large_bodies',
  'uploads',
  'downloads',
] as const;

/** One statement of an account at once leaves other accounts a core of a small database server. */
const SLOW_READS = { slotsMax: 4, shareMax: 1, maxInFlight: 20 };
/** Half of the resolutions below one domain that a process makes at once (packages/egress/src/name-resolver.ts). */
const TESTS_MAX = 8;
/** The longest logs of a run take some 60 MB in a response, and a pod has 512 MiB. */
const LARGE_BODIES = { slotsMax: 4, shareMax: 2, maxInFlight: 20 };
/** An upload buffers a few hundred KB, and a part of a file in PostgreSQL. */
const UPLOADS = { slotsMax: 16, shareMax: 8, maxInFlight: 32 };
const DOWNLOADS = { slotsMax: 64, shareMax: 16, maxInFlight: 16 };

/**
 * Connections of the pool for slow reads: one for each slot, one for each of two counts in the background, and one for
 * the poll of the change streams.
 */
export const READ_CONNECTIONS = SLOW_READS.slotsMax + 3;

export function createAccountBudgets(options: {
  /** Size of the connection pool for all but slow reads and reports. */
  connectionsMax: number;
  /** Requests of an account in flight, all kinds but endpoint tests. */
  maxInFlight: number;
  waitMs: number;
  metrics: Pick<ManagementMetrics, 'rejectedRequests' | 'measureWaiting'>;
}): AccountBudgets {
  const { connectionsMax, maxInFlight, waitMs, metrics } = options;
  const rejects = (budget: (typeof ACCOUNT_BUDGETS)[number]) => ({
    waitMs,
    onRejected: () => metrics.rejectedRequests.inc({ budget }),
  });
  const requests = new Bulkhead({
    ...bulkheadLimits(connectionsMax),
    maxInFlight,
    ...rejects('requests'),
  });
  const slowReads = new Bulkhead({ ...SLOW_READS, ...rejects('slow_reads') });
  const endpointTests = new Bulkhead({
    slotsMax: Number.POSITIVE_INFINITY,
    shareMax: TESTS_MAX,
    maxInFlight: TESTS_MAX,
    ...rejects('endpoint_tests'),
  });
  const largeBodies = new Bulkhead({ ...LARGE_BODIES, ...rejects('large_bodies') });
  const uploads = new Bulkhead({ ...UPLOADS, ...rejects('uploads') });
  const downloads = new Bulkhead({ ...DOWNLOADS, ...rejects('downloads'), waitMs: 0 });
  metrics.measureWaiting(
    () => requests.waitingCount + slowReads.waitingCount + largeBodies.waitingCount + uploads.waitingCount,
  );
  return { requests, slowReads, endpointTests, largeBodies, uploads, downloads };
}
