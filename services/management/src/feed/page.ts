// SQL by hand: reads events in the order of their positions, bounded by rows and bytes.
import { EVENT_TYPES, type JobRunEvent } from '@runhook/contract';
import { column, isStoredEventData, type Queryable, queryRows } from '@runhook/database';
import type { FeedPosition } from './cursor.ts';

/** Rows of one statement. A literal in it, because PostgreSQL plans a parameter as a tenth of all rows. */
const ROWS = 100;
/** Maximum data of the rows of one statement; at least one row is read. */
const ROW_BYTES_MAX = 1_024 * 1_024;
/** Events that a page reads: if few match, it is empty or short, and the next one continues. */
export const SCANNED_MAX = 1_000;
/** Maximum size of a page's payloads; a page has at least one. */
const PAGE_BYTES_MAX = 1_024 * 1_024;

export interface FeedPage<Item> {
  items: Item[];
  /** Where the next page begins. */
  next: FeedPosition;
  /** Whether there may be events between `next` and the horizon. */
  hasMore: boolean;
}

export interface FeedQuery<Item> {
  accountId: number;
  from: FeedPosition;
  /** The page ends below this position. */
  horizon: bigint;
  limit: number;
  /** Returns the item of an event, with its size; null for an event that does not match. */
  itemOf: (event: JobRunEvent) => { item: Item; bytes: number } | null;
}

const ROW = {
  id: column.text,
  event_type: column.oneOf(EVENT_TYPES),
  timestamp: column.text,
  data: isStoredEventData,
  position: column.digits,
  read_count: column.digits,
};

// Ids are compared by bytes, so that the order within a transaction does not depend on the operating system.
const SELECT_ROWS = `
  SELECT id, event_type, "timestamp", data, position, read_count
  FROM (
    SELECT e.*, row_number() OVER w AS n, sum(octet_length(e.data::text)) OVER w AS bytes, count(*) OVER () AS read_count
    FROM (
      SELECT id, event_type, "timestamp", data, position FROM events
      WHERE account_id = $1 AND position >= $2::bigint AND position < $4::bigint
        AND (position, id COLLATE "C") > ($2::bigint, $3)
      ORDER BY position, id COLLATE "C"
      LIMIT ${ROWS}
    ) AS e
    WINDOW w AS (ORDER BY e.position, e.id COLLATE "C" ROWS UNBOUNDED PRECEDING)
  ) AS e
  WHERE n = 1 OR bytes <= ${ROW_BYTES_MAX}
  ORDER BY position, id COLLATE "C"`;

/** Reads a page. Every event of the account from `from` to `next` was passed to `itemOf`. */
export async function readFeedPage<Item>(
  database: Queryable,
  query: FeedQuery<Item>,
): Promise<FeedPage<Item>> {
  const { accountId, horizon, limit, itemOf } = query;
  const items: Item[] = [];
  let { from: next } = query;
  let bytes = 0;
  for (let scanned = 0; scanned < SCANNED_MAX; ) {
    const values = [accountId, String(next.position), next.eventId, String(horizon)];
    const rows = await queryRows(database, ROW, SELECT_ROWS, values, 'feed-page');
    for (const { id: eventId, event_type: eventType, timestamp, data, position } of rows) {
      const found = itemOf({ eventId, accountId, eventType, timestamp, data } as JobRunEvent);
      if (found !== null) {
        const isFull = items.length === limit || (items.length > 0 && bytes + found.bytes > PAGE_BYTES_MAX);
        if (isFull) return { items, next, hasMore: true };
        items.push(found.item);
        bytes += found.bytes;
      }
      next = { position: BigInt(position), eventId };
    }
    scanned += rows.length;
    // If fewer rows are returned than were read, the remaining ones have too many bytes for one statement.
    const readCount = Number(rows[0]?.read_count ?? 0);
    if (readCount < ROWS && rows.length === readCount)
      return { items, next: endOf(next, horizon), hasMore: false };
  }
  return { items, next, hasMore: true };
}

/** Returns the end of the page, from which later pages need not read what this one has. */
function endOf(last: FeedPosition, horizon: bigint): FeedPosition {
  return horizon > last.position ? { position: horizon, eventId: '' } : last;
}
