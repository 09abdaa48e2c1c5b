// SQL by hand: reads events in the order of their positions, bounded by rows and bytes.
import { EVENT_TYPES, type JobRunEvent } from '@runhook/contract';
import { column, isStoredEventData, type Queryable, queryRows } from '@runhook/database';
import type { FeedPosition } from './cursor.ts';

/** Rows of one statement. A literal in it, because PostgreSQL plans a parameter as a tenth of all rows. */
const ROWS = 100;
/** Rows of the statements that follow one whose rows had too many bytes: it has read them all to count them. */
const LARGE_ROWS = 10;
/** Maximum data of the rows of one statement; at least one row is read. */
const ROW_BYTES_MAX = 1_024 * 1_024;
/** Events that a page reads: if few match, it is empty or short, and the next one continues. */
export const SCANNED_MAX = 1_000;
/** Maximum size of a page's payloads; a page has at least one. */
const PAGE_BYTES_MAX = 1_024 * 1_024;
/** Maximum data of the events that a page reads, and time after which it ends: below the deadline of a request. */
const SCANNED_BYTES_MAX = 8 * 1_024 * 1_024;
const PAGE_MS_MAX = 2_000;

export interface FeedPage<Item> {
  items: Item[];
  /** Where the next page begins. */
  next: FeedPosition;
  /** Whether there may be events between `next` and the horizon. */
  hasMore: boolean;
  /** When the last event that was read was recorded, in seconds since the epoch; null if none was read. */
  lastRecordedAtSeconds: number | null;
}

export interface FeedQuery<Item> {
  accountId: number;
  from: FeedPosition;
  /** The page ends below this position. */
  horizon: bigint;
  limit: number;
  /** Returns the item of an event, with its size; null for an event that does not match. */
  itemOf: (event: JobRunEvent, position: FeedPosition) => { item: Item; bytes: number } | null;
  /** Monotonic clock in milliseconds, which tests replace. */
  nowMs?: () => number;
}

const ROW = {
  id: column.text,
  event_type: column.oneOf(EVENT_TYPES),
  timestamp: column.text,
  data: isStoredEventData,
  position: column.digits,
  recorded_at_seconds: column.digits,
  bytes: column.digits,
  read_count: column.digits,
};

// Ids are compared by bytes, so that the order within a transaction does not depend on the operating system.
const selectRows = (limit: number) => `
  SELECT id, event_type, "timestamp", data, position, floor(extract(epoch FROM created_at))::bigint AS recorded_at_seconds,
    bytes, read_count
  FROM (
    SELECT e.*, row_number() OVER w AS n, sum(octet_length(e.data::text)) OVER w AS bytes, count(*) OVER () AS read_count
    FROM (
      SELECT id, event_type, "timestamp", data, position, created_at FROM events
      WHERE account_id = $1 AND position >= $2::bigint AND position < $4::bigint
        AND (position, id COLLATE "C") > ($2::bigint, $3)
      ORDER BY position, id COLLATE "C"
      LIMIT ${limit}
    ) AS e
    WINDOW w AS (ORDER BY e.position, e.id COLLATE "C" ROWS UNBOUNDED PRECEDING)
  ) AS e
  WHERE n = 1 OR bytes <= ${ROW_BYTES_MAX}
  ORDER BY position, id COLLATE "C"`;

const SELECT_ROWS = selectRows(ROWS);
const SELECT_LARGE_ROWS = selectRows(LARGE_ROWS);

/** Reads a page. Every event of the account from `from` to `next` was passed to `itemOf`. */
export async function readFeedPage<Item>(
  database: Queryable,
  query: FeedQuery<Item>,
): Promise<FeedPage<Item>> {
  const { accountId, horizon, limit, itemOf, nowMs = () => performance.now() } = query;
  const endsAtMs = nowMs() + PAGE_MS_MAX;
  const items: Item[] = [];
  let { from: next } = query;
  let lastRecordedAtSeconds: number | null = null;
  let itemBytes = 0;
  let scannedBytes = 0;
  let rowsMax = ROWS;
  const page = (hasMore: boolean) => ({ items, next, hasMore, lastRecordedAtSeconds });
  for (let scanned = 0; scanned < SCANNED_MAX && scannedBytes < SCANNED_BYTES_MAX; ) {
    const values = [accountId, String(next.position), next.eventId, String(horizon)];
    const rows =
      rowsMax === ROWS
        ? await queryRows(database, ROW, SELECT_ROWS, values, 'feed-page')
        : await queryRows(database, ROW, SELECT_LARGE_ROWS, values, 'feed-page-large');
    for (const { id: eventId, event_type: eventType, timestamp, data, ...row } of rows) {
      const position = { position: BigInt(row.position), eventId };
      const found = itemOf({ eventId, accountId, eventType, timestamp, data } as JobRunEvent, position);
      if (found !== null) {
        const isFull =
          items.length === limit || (items.length > 0 && itemBytes + found.bytes > PAGE_BYTES_MAX);
        if (isFull) return page(true);
        items.push(found.item);
        itemBytes += found.bytes;
      }
      next = position;
      lastRecordedAtSeconds = Number(row.recorded_at_seconds);
    }
    scanned += rows.length;
    scannedBytes += Number(rows.at(-1)?.bytes ?? 0);
    const readCount = Number(rows[0]?.read_count ?? 0);
    // If fewer rows are returned than were read, the remaining ones have too many bytes for one statement.
    const isCut = rows.length < readCount;
    if (!isCut && readCount < rowsMax) {
      next = endOf(next, horizon);
      return page(false);
    }
    if (isCut) rowsMax = LARGE_ROWS;
    if (nowMs() >= endsAtMs) break;
  }
  return page(true);
}

/** Returns the end of the page, from which later pages need not read what this one has. */
function endOf(last: FeedPosition, horizon: bigint): FeedPosition {
  return horizon > last.position ? { position: horizon, eventId: '' } : last;
}
