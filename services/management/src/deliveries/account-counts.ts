// SQL by hand: counts millions of deliveries of all webhooks of an account by the half-hour.
import { column, type Queryable, queryRows } from '@runhook/database';
import { findWebhooks } from './account-log-conditions.ts';
import { CountCache } from './count-cache.ts';
import { timestampOf } from './delivery.ts';
import { settledBoundary } from './hourly-counts.ts';

/** Width of a slot of the cache, half an hour. The buckets of histograms of a day or more are multiples of it. */
export const SLOT_MICROS = 1_800_000_000n;

const WEBHOOKS_PER_STATEMENT = 100;
/** Duration of a read above which the account's deliveries are counted for the cache. */
const SLOW_MS = 30;

export interface CountedSlots {
  /** By webhook, pairs: a half-hour, counted from the epoch, and the number of deliveries created in it. */
  byWebhook: ReadonlyMap<string, Int32Array>;
  /** Start of a half-hour in microseconds since the epoch; deliveries created before it are counted. */
  closedBefore: bigint;
}

/** Caches the number of deliveries of an account's webhooks that were created in each completed half-hour. */
export interface AccountCounts {
  /** Returns null if the counts are not cached. */
  getCached(accountId: number): CountedSlots | null;
  /** Reports a read. After a slow one, deliveries are counted in the background unless the counts are fresh. */
  recordRead(accountId: number, durationMs: number): void;
}

/** Caches counts for the same reason as those of a single log (docs/adr/0014-hourly-counts-of-long-logs.md). */
export function createAccountCounts(database: Queryable, slowMs = SLOW_MS): AccountCounts {
  const cache = new CountCache<CountedSlots>();
  const count = (accountId: number) =>
    void cache.count(String(accountId), () => countSlots(database, accountId, settledBoundary(SLOT_MICROS)));
  return {
    getCached(accountId) {
      const cachedSlots = cache.get(String(accountId));
      if (cachedSlots !== null && !cache.isFresh(String(accountId))) count(accountId);
      return cachedSlots;
    },
    recordRead(accountId, durationMs) {
      if (durationMs > slowMs && !cache.isFresh(String(accountId))) count(accountId);
    },
  };
}

const SLOT_COUNT = { webhook: column.text, slot: column.integer, deliveries: column.integer };

const COUNT_SLOTS = `
  SELECT webhook.id AS webhook, (extract(epoch FROM d.start) / 1800)::int AS slot, d.deliveries::int AS deliveries
  FROM unnest($1::text[]) AS webhook (id)
  CROSS JOIN LATERAL (
    SELECT date_bin('30 minutes', created_at, timestamptz 'epoch') AS start, count(*) AS deliveries
    FROM deliveries WHERE account_id = $3 AND subscription_id = webhook.id AND created_at < ${timestampOf('$2')} GROUP BY 1
  ) d`;

async function countSlots(
  database: Queryable,
  accountId: number,
  closedBefore: bigint,
): Promise<CountedSlots> {
  const webhooks = [...(await findWebhooks(database, accountId, { subscriptionIds: null })).keys()];
  const pairsByWebhook = new Map<string, number[]>(webhooks.map((id) => [id, []]));
  for (let start = 0; start < webhooks.length; start += WEBHOOKS_PER_STATEMENT) {
    const batch = webhooks.slice(start, start + WEBHOOKS_PER_STATEMENT);
    const values = [batch, String(closedBefore), accountId];
    for (const row of await queryRows(database, SLOT_COUNT, COUNT_SLOTS, values))
      pairsByWebhook.get(row.webhook)?.push(row.slot, row.deliveries);
  }
  const byWebhook = new Map([...pairsByWebhook].map(([id, pairs]) => [id, Int32Array.from(pairs)] as const));
  return { byWebhook, closedBefore };
}
