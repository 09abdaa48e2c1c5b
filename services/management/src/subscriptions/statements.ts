import type { EventType, SubscriptionFields } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import { containsText, microsOf } from '../http/sql-text.ts';

/** What `SubscriptionRow` needs, from `subscriptions s JOIN accounts a`. */
export const SUBSCRIPTION_COLUMNS = `
  s.id, a.identifier AS account_identifier, s.account_id::text AS account_id, s.name, s.description,
  s.job_ids::text[] AS job_ids, s.event_types, s.client_url, s.active,
  ${microsOf('s.created_at')} AS created_at, ${microsOf('s.updated_at')} AS updated_at,
  ${microsOf('s.dispatched_at')} AS dispatched_at, s.http_status_code, s.deactivate_reason`;

type Pool = Database['pool'];

/** Names a subscription of an account. A deleted one, or one of another account, is not found. */
export interface SubscriptionKey {
  accountId: number;
  id: string;
}

const INSERT = `
  WITH s AS (
    INSERT INTO subscriptions
      (id, account_id, name, description, event_types, job_ids, client_url, active, hmac_secret_ciphertext)
    VALUES ($1, $2, $3, $4, $5, $6::bigint[], $7, $8, $9)
    RETURNING *)
  SELECT ${SUBSCRIPTION_COLUMNS} FROM s JOIN accounts a ON a.id = s.account_id`;

export async function insertSubscription(
  pool: Pool,
  subscription: SubscriptionKey & { fields: SubscriptionFields; hmacSecretCiphertext: string },
): Promise<SubscriptionRow> {
  const { id, accountId, fields, hmacSecretCiphertext } = subscription;
  const [row] = await runStatement<SubscriptionRow>(pool, INSERT, [
    id,
    accountId,
    fields.name,
    fields.description,
    fields.event_types,
    fields.job_ids,
    fields.client_url,
    fields.active ?? true,
    hmacSecretCiphertext,
  ]);
  return row as SubscriptionRow;
}

const SELECT_ONE = `
  SELECT ${SUBSCRIPTION_COLUMNS}, s.hmac_secret_ciphertext
  FROM subscriptions s JOIN accounts a ON a.id = s.account_id
  WHERE s.id = $1 AND s.account_id = $2 AND s.deleted_at IS NULL`;

/** One subscription with its encrypted secret, or null. */
export async function findSubscription(
  pool: Pool,
  { id, accountId }: SubscriptionKey,
): Promise<(SubscriptionRow & { hmac_secret_ciphertext: string }) | null> {
  const rows = await runStatement<SubscriptionRow & { hmac_secret_ciphertext: string }>(pool, SELECT_ONE, [
    id,
    accountId,
  ]);
  return rows[0] ?? null;
}

const MATCHING = `
  s.account_id = $1 AND s.deleted_at IS NULL AND ($4::boolean IS NULL OR s.active = $4)
    AND ($5::text IS NULL OR ${containsText('$5', ['s.name', 's.client_url', 's.description'])})`;

// The join leaves one row of nulls when the page is empty, so the total is always told. What is counted and what is
// shown are found apart: the page comes from the index in its order, and keys are enough to skip by.
const SELECT_PAGE = `
  SELECT total.total_count, page.*
  FROM (SELECT count(*)::int AS total_count FROM subscriptions s WHERE ${MATCHING}) total
  LEFT JOIN (
    SELECT ${SUBSCRIPTION_COLUMNS}, s.created_at AS created
    FROM (SELECT s.id FROM subscriptions s WHERE ${MATCHING}
      ORDER BY s.created_at DESC, s.id DESC LIMIT $2 OFFSET $3) k
    JOIN subscriptions s ON s.id = k.id
    JOIN accounts a ON a.id = s.account_id
  ) page ON true
  ORDER BY page.created DESC, page.id DESC`;

/** Null filters let everything through. */
export interface SubscriptionFilters {
  active: boolean | null;
  /** In name, endpoint or description. */
  search: string | null;
}

/** A page of an account's subscriptions, newest first, and how many match in all. */
export async function listSubscriptions(
  pool: Pool,
  query: { accountId: number; filters: SubscriptionFilters; limit: number; offset: number },
): Promise<{ rows: SubscriptionRow[]; totalCount: number }> {
  const { accountId, filters, limit, offset } = query;
  type PageRow = { total_count: number } & (SubscriptionRow | { id: null });
  const values = [accountId, limit, offset, filters.active, filters.search];
  const rows = await runStatement<PageRow>(pool, SELECT_PAGE, values);
  return {
    rows: rows.filter((row): row is PageRow & SubscriptionRow => row.id !== null),
    totalCount: rows[0]?.total_count ?? 0,
  };
}

// Two updates within a microsecond still differ. Activating ends whatever made it inactive.
const UPDATE = `
  UPDATE subscriptions s
  SET name = $3, description = $4, event_types = $5, job_ids = $6::bigint[], client_url = $7,
    active = COALESCE($8, s.active),
    deactivate_reason = CASE WHEN COALESCE($8, s.active) THEN NULL ELSE s.deactivate_reason END,
    updated_at = GREATEST(clock_timestamp(), s.updated_at + interval '1 microsecond')
  FROM accounts a
  WHERE s.id = $1 AND s.account_id = $2 AND a.id = s.account_id AND s.deleted_at IS NULL
  RETURNING ${SUBSCRIPTION_COLUMNS}`;

/** Replaces the fields; an undefined `active` keeps the stored value. Null when there is no such subscription. */
export async function updateSubscription(
  pool: Pool,
  { id, accountId }: SubscriptionKey,
  fields: SubscriptionFields,
): Promise<SubscriptionRow | null> {
  const [row] = await runStatement<SubscriptionRow>(pool, UPDATE, [
    id,
    accountId,
    fields.name,
    fields.description,
    fields.event_types,
    fields.job_ids,
    fields.client_url,
    fields.active ?? null,
  ]);
  return row ?? null;
}

const DELETE = `
  UPDATE subscriptions SET deleted_at = now() WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL RETURNING id`;

/** Whether there was such a subscription. Its deliveries leave with retention. */
export async function deleteSubscription(pool: Pool, { id, accountId }: SubscriptionKey): Promise<boolean> {
  return (await runStatement(pool, DELETE, [id, accountId])).length > 0;
}

/** Those of the ids that are not jobs of the account, in the order given. */
export async function missingJobIds(
  pool: Database['pool'],
  accountId: number,
  jobIds: readonly number[],
): Promise<number[]> {
  if (jobIds.length === 0) return [];
  const rows = await runStatement<{ id: string }>(
    pool,
    'SELECT id::text FROM jobs WHERE account_id = $1 AND id = ANY($2::bigint[])',
    [accountId, jobIds],
  );
  const found = new Set(rows.map((row) => Number(row.id)));
  return jobIds.filter((id) => !found.has(id));
}

/** A subscription as the database has it; times are microseconds since the epoch, as digits. */
export interface SubscriptionRow {
  id: string;
  account_identifier: string;
  account_id: string;
  name: string;
  description: string;
  job_ids: string[];
  event_types: EventType[];
  client_url: string;
  active: boolean;
  created_at: string;
  updated_at: string;
  dispatched_at: string | null;
  http_status_code: number;
  deactivate_reason: string | null;
}

/** A subscription as the API answers it (docs/contract.md#subscriptions). */
export interface SubscriptionView
  extends Omit<SubscriptionRow, 'dispatched_at' | 'http_status_code' | 'deactivate_reason'> {
  /** Absent until the first dispatch. */
  dispatched_at?: string;
  /** "0" before the first delivery. */
  http_status_code: string;
  /** Absent unless something other than a request made it inactive. */
  deactivate_reason?: string;
  /** In the answer to the create only. */
  hmac_secret?: string;
}

export function subscriptionView(row: SubscriptionRow): SubscriptionView {
  return {
    id: row.id,
    account_identifier: row.account_identifier,
    account_id: row.account_id,
    name: row.name,
    description: row.description,
    job_ids: row.job_ids,
    event_types: row.event_types,
    client_url: row.client_url,
    active: row.active,
    created_at: row.created_at,
    updated_at: row.updated_at,
    ...(row.dispatched_at === null ? {} : { dispatched_at: row.dispatched_at }),
    http_status_code: String(row.http_status_code),
    ...(row.deactivate_reason === null ? {} : { deactivate_reason: row.deactivate_reason }),
  };
}
