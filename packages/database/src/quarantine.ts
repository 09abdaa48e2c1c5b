import { type EventKey, idDay, truncateText, wellFormedText } from '@runhook/contract';
import pg from 'pg';
import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';
import { type UnnestColumns, unnestParameterCount, unnestSql, unnestValues } from './unnest.ts';

/** Kinds of `quarantined_items`, as in the migration. */
export const QUARANTINE_KINDS = [
  'event',
  'delivery',
  'lane',
  'recovery',
  'status',
  'notice',
  'conflict',
  'out_of_range',
] as const;
export type QuarantineKind = (typeof QUARANTINE_KINDS)[number];

export interface QuarantineKey {
  accountId: number;
  /**
   * Id of an event, a delivery, a recovery or a notice; for a lane or a status the id of the subscription; for a
   * conflict or an event out of range the id of the event and a hash of its data.
   */
  key: string;
}

/**
 * An item that a store rejected for its data, or an event that cannot be recorded under its id: `conflict`, if another
 * event with that id is on record, or `out_of_range`, if the id's time is outside the log. The message of such an event
 * has a new id.
 */
export interface QuarantinedItem extends QuarantineKey {
  kind: QuarantineKind;
  /** Reason for the rejection; see {@link rejectionReason}. */
  reason: string;
  /** The message of an event that is not on record: this is its only copy. */
  message?: unknown;
}

const ITEM_COLUMNS: UnnestColumns<QuarantinedItem> = {
  account_id: ['bigint', ({ accountId }) => accountId],
  kind: ['text', ({ kind }) => kind],
  key: ['text', ({ key }) => key],
  reason: ['text', ({ reason }) => reason],
  message: ['bytea', ({ message }) => encodeMessage(message)],
};

/** Encodes a message as JSON. Returns null if that fails: its event may still be on record. */
function encodeMessage(message: unknown): Buffer | null {
  try {
    return message === undefined ? null : Buffer.from(JSON.stringify(message));
  } catch {
    return null;
  }
}

const INSERT_ITEMS = `
  INSERT INTO quarantined_items AS q (account_id, kind, key, reason, message)
  SELECT DISTINCT ON (i.account_id, i.kind, i.key) i.account_id, i.kind, i.key, i.reason, i.message
  FROM ${unnestSql(ITEM_COLUMNS, 1, 'i')}
  ON CONFLICT (account_id, kind, key) DO UPDATE
  SET reason = EXCLUDED.reason, message = coalesce(q.message, EXCLUDED.message), created_at = EXCLUDED.created_at
  RETURNING kind, xmax = 0 AS is_new`;

/**
 * Sets items aside. An item that is already set aside gets the new reason and another version, so that a release that
 * has begun does not delete it. Returns the kinds of the items that were newly set aside.
 */
export async function addQuarantined(
  database: Queryable,
  items: readonly QuarantinedItem[],
): Promise<QuarantineKind[]> {
  if (items.length === 0) return [];
  const rows = await runStatement<{ kind: QuarantineKind; is_new: boolean }>(
    database,
    INSERT_ITEMS,
    unnestValues(ITEM_COLUMNS, items),
  );
  return rows.flatMap(({ kind, is_new }) => (is_new ? [kind] : []));
}

const KEY_COLUMNS: UnnestColumns<QuarantineKey> = {
  account_id: ITEM_COLUMNS.account_id as never,
  key: ITEM_COLUMNS.key as never,
};
const SELECT_AMONG = `
  SELECT q.account_id, q.key FROM ${unnestSql(KEY_COLUMNS, 1, 'i')}
  JOIN quarantined_items q ON q.account_id = i.account_id AND q.kind = $${1 + unnestParameterCount(KEY_COLUMNS)} AND q.key = i.key`;

/** Returns the items that are not set aside, in input order. */
export async function withoutQuarantined<Item>(
  database: Queryable,
  kind: QuarantineKind,
  items: readonly Item[],
  keyOf: (item: Item) => QuarantineKey,
): Promise<Item[]> {
  if (items.length === 0) return [];
  const rows = await runStatement<{ account_id: string; key: string }>(
    database,
    SELECT_AMONG,
    [...unnestValues(KEY_COLUMNS, items.map(keyOf)), kind],
    'quarantined-among',
  );
  if (rows.length === 0) return [...items];
  const quarantined = new Set(
    rows.map((row) => toMapKey({ accountId: Number(row.account_id), key: row.key })),
  );
  return items.filter((item) => !quarantined.has(toMapKey(keyOf(item))));
}

const toMapKey = ({ accountId, key }: QuarantineKey) => `${accountId} ${key}`;

const SELECT_KEYS = `
  SELECT DISTINCT key FROM quarantined_items WHERE $1::text[] IS NULL OR key = ANY ($1)`;

/** Returns the keys of all items that are set aside, or those of the `keys` that are among them. */
export async function listQuarantinedKeys(
  database: Queryable,
  keys: readonly string[] | null,
): Promise<string[]> {
  const rows = await runStatement<{ key: string }>(database, SELECT_KEYS, [keys]);
  return rows.map(({ key }) => key);
}

const COUNT_ITEMS = 'SELECT count(*)::int AS count FROM quarantined_items';

export async function countQuarantined(database: Queryable): Promise<number> {
  const [row] = await runStatement<{ count: number }>(database, COUNT_ITEMS, []);
  return row?.count ?? 0;
}

/** A row of `quarantined_items`. */
export interface QuarantinedRow extends QuarantinedItem {
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  /** Changes when the item is set aside again. */
  version: string;
}

const SELECT_ITEMS = `
  SELECT account_id, kind, key, reason, message, (extract(epoch FROM created_at) * 1000)::float8 AS created_at_ms,
    xmin::text AS version
  FROM quarantined_items
  WHERE ($1::bigint IS NULL OR account_id = $1) AND ($2::text[] IS NULL OR key = ANY ($2))
  ORDER BY created_at DESC, account_id, kind, key LIMIT $3`;

interface ListRow {
  [column: string]: unknown;
  account_id: string;
  kind: QuarantineKind;
  key: string;
  reason: string;
  message: Buffer | null;
  created_at_ms: number;
  version: string;
}

/** Returns the items that are set aside, newest first, optionally only those of one account or with these keys. */
export async function listQuarantined(
  database: Queryable,
  { accountId, keys, limit }: { accountId?: number; keys?: readonly string[]; limit?: number },
): Promise<QuarantinedRow[]> {
  const rows = await runStatement<ListRow>(database, SELECT_ITEMS, [
    accountId ?? null,
    keys ?? null,
    limit ?? null,
  ]);
  return rows.map((row) => ({
    accountId: Number(row.account_id),
    kind: row.kind,
    key: row.key,
    reason: row.reason,
    ...(row.message !== null && { message: JSON.parse(row.message.toString()) as unknown }),
    createdAtMs: row.created_at_ms,
    version: row.version,
  }));
}

const DELETE_ITEM = `
  DELETE FROM quarantined_items
  WHERE account_id = $1 AND kind = $2 AND key = $3 AND ($4::xid IS NULL OR xmin = $4)`;

/**
 * Deletes an item; if `version` is set, only if the item has not been set aside again since. The reconciler queues a
 * released event or delivery again within seconds, if it is on record.
 */
export async function releaseQuarantined(
  database: Queryable,
  { accountId, kind, key, version }: QuarantineKey & { kind: QuarantineKind; version?: string },
): Promise<void> {
  await runStatement(database, DELETE_ITEM, [accountId, kind, key, version ?? null]);
}

const DELETE_UNDISPATCHED_EVENT =
  'DELETE FROM undispatched_events WHERE day = $1 AND event_id = $2 AND account_id = $3';

/** Removes the event from the undispatched events, so that no dispatcher dispatches it. */
export async function withdrawEvent(database: Queryable, { accountId, eventId }: EventKey): Promise<void> {
  await runStatement(database, DELETE_UNDISPATCHED_EVENT, [idDay('event', eventId), eventId, accountId]);
}

const REASON_CHARACTERS_MAX = 500;

/** Describes a rejection as text that PostgreSQL can store, whatever characters the error quotes. */
export function rejectionReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof pg.DatabaseError && error.code !== undefined ? `${error.code}: ` : '';
  return wellFormedText(truncateText(`${code}${message}`, REASON_CHARACTERS_MAX));
}
