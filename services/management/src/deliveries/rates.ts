// SQL by hand: counts the logs of a page of webhooks by the hour from indexes.
import { isId } from '@runhook/contract';
import { column, queryRows } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { createReader, integer, LIMIT_MAX, QueryReader } from '../http/query-parameters.ts';
import { timestampOf } from './delivery.ts';
import type { ListDependencies } from './routes.ts';
import {
  cacheSlowReads,
  dayOf,
  STATISTICS_HOURS_DEFAULT,
  STATISTICS_HOURS_MAX,
  type WithDatabase,
} from './statistics.ts';

/** Number of deliveries of a webhook created in each of the last hours, and how many of them are failed now. */
export interface RatesView {
  subscription_id: string;
  /** Start of the first hour in microseconds since the epoch, as digits. */
  since: string;
  delivery_count: number;
  failed_count: number;
  /** Counts by hour, oldest first. */
  delivery_counts: number[];
  failed_counts: number[];
}

interface RatesQuery {
  accountId: number;
  /** Sorted ids. */
  subscriptionIds: readonly string[];
  hours: number;
}

/** Returns the last hours of several webhooks in one response, for a list (docs/contract.md#statistics). */
export function ratesEndpoint({ prisma, reads }: ListDependencies): AccountEndpoint {
  const rates = cacheSlowReads((query: WithDatabase<RatesQuery>) => readRates(prisma, query), {
    keyOf: ({ accountId, subscriptionIds, hours }) => `${accountId} ${hours} ${subscriptionIds.join()}`,
  });
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/statistics',
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const { account, query } = request;
      const reader = new QueryReader(query);
      const hours = reader.optional('hours', integer(1, STATISTICS_HOURS_MAX)) ?? STATISTICS_HOURS_DEFAULT;
      const requestedIds = reader.required('subscription_id', subscriptionIds);
      reader.check();
      const data = await rates({
        accountId: account.id,
        subscriptionIds: requestedIds,
        hours,
        database: reads.databaseFor(request),
      });
      return { code: 200, data };
    },
  };
}

const subscriptionIds = createReader((text) => {
  const ids = [...new Set(text.split(','))].sort();
  const isValid = ids.length <= LIMIT_MAX && ids.every((id) => isId('subscription', id));
  return isValid ? ids : null;
}, `must be up to ${LIMIT_MAX} ids of webhooks, separated by commas`);

// Both counts come from indexes: of all deliveries, by an index-only scan, and of the few that are not delivered.
const RATE_CONDITIONS = `
  d.account_id = $3 AND d.subscription_id = ANY ($1::text[]) AND d.created_at >= ${timestampOf('$2')}
  AND d.day >= ${dayOf(timestampOf('$2'))} - 1 AND d.day <= ${dayOf('now()')} + 1`;
const HOUR_INDEX = `extract(epoch FROM d.created_at - ${timestampOf('$2')})::bigint / 3600`;

const SELECT_RATES = `
  SELECT subscription_id, hour::int, sum(deliveries)::int AS deliveries, sum(failed)::int AS failed
  FROM (
    SELECT d.subscription_id, ${HOUR_INDEX} AS hour, count(*) AS deliveries, 0 AS failed
    FROM deliveries d WHERE ${RATE_CONDITIONS} GROUP BY 1, 2
    UNION ALL
    SELECT d.subscription_id, ${HOUR_INDEX}, 0, count(*)
    FROM deliveries d WHERE ${RATE_CONDITIONS} AND d.status IN ('failed', 'cancelled') AND d.status = 'failed' GROUP BY 1, 2
  ) counted
  GROUP BY 1, 2`;

const RATE_COLUMNS = {
  subscription_id: column.text,
  /** Hours since the first one, which is 0. */
  hour: column.integer,
  deliveries: column.integer,
  failed: column.integer,
};

const HOUR_MS = 3_600_000;

/** Returns the rates of the requested webhooks, sorted by id; omits ids that the account does not have. */
async function readRates(prisma: PrismaClient, query: WithDatabase<RatesQuery>): Promise<RatesView[]> {
  const { accountId, subscriptionIds: requestedIds, hours, database } = query;
  const ownedSubscriptions = await prisma.subscription.findMany({
    where: { accountId: BigInt(accountId), id: { in: [...requestedIds] }, deletedAt: null },
    select: { id: true },
    orderBy: { id: 'asc' },
  });
  const ids = ownedSubscriptions.map(({ id }) => id);
  const since = `${(Math.floor(Date.now() / HOUR_MS) - hours + 1) * HOUR_MS}000`;
  const rows =
    ids.length === 0 ? [] : await queryRows(database, RATE_COLUMNS, SELECT_RATES, [ids, since, accountId]);
  return ids.map((subscription_id) => {
    const delivery_counts = new Array<number>(hours).fill(0);
    const failed_counts = new Array<number>(hours).fill(0);
    for (const row of rows) {
      // The clock of the database may already be in the next hour, which the next call shows.
      if (row.subscription_id !== subscription_id || row.hour >= hours) continue;
      delivery_counts[row.hour] = row.deliveries;
      failed_counts[row.hour] = row.failed;
    }
    const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
    return {
      subscription_id,
      since,
      delivery_count: sum(delivery_counts),
      failed_count: sum(failed_counts),
      delivery_counts,
      failed_counts,
    };
  });
}
