import type { ManagementMetrics } from '../metrics.ts';
import { AccountBulkhead, bulkheadLimits } from './account-bulkhead.ts';

/**
 * Budgets of an account in one process. Each has separate slots, so that the requests of one kind delay neither those
 * of another kind nor those of other accounts.
 *
 * | Budget | Requests | Slots of an account | Of all accounts | In flight |
 * |---|---|---|---|---|
 * | requests | all below but tests; a report without `Idempotency-Key` takes no slot | 3/4 | pool - 2 | setting |
 * | slow_reads | lists and counts that grow with the account (`isSlowRead` of an endpoint) | 2 | 4 | 20 |
 * | endpoint_tests | tests of endpoints, each with at most one resolution of a name | 8 | no limit | 8 |
 */
export interface AccountBudgets {
  requests: Pick<AccountBulkhead, 'run' | 'runWithoutSlot'>;
  slowReads: Pick<AccountBulkhead, 'run'>;
  endpointTests: Pick<AccountBulkhead, 'run'>;
}

export const ACCOUNT_BUDGETS = ['requests', 'slow_reads', 'endpoint_tests'] as const;

/** Two statements at once leave other accounts a core of a small database server. */
const SLOW_READS = { slotsMax: 4, shareMax: 2, maxInFlight: 20 };
/** Half of the resolutions below one domain that a process makes at once (packages/egress/src/name-resolver.ts). */
const TESTS_MAX = 8;

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
  const requests = new AccountBulkhead({
    ...bulkheadLimits(connectionsMax),
    maxInFlight,
    ...rejects('requests'),
  });
  const slowReads = new AccountBulkhead({ ...SLOW_READS, ...rejects('slow_reads') });
  const endpointTests = new AccountBulkhead({
    slotsMax: Number.POSITIVE_INFINITY,
    shareMax: TESTS_MAX,
    maxInFlight: TESTS_MAX,
    ...rejects('endpoint_tests'),
  });
  metrics.measureWaiting(() => requests.waitingCount + slowReads.waitingCount);
  return { requests, slowReads, endpointTests };
}
