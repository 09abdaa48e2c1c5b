/** A position in the order of events: after the event, or before all events of the position if `eventId` is empty. */
export interface FeedPosition {
  position: bigint;
  eventId: string;
}

/** A position, with the history of the server that it belongs to. */
export interface FeedCursor extends FeedPosition {
  /** Id of the generation of positions. */
  generation: string;
  /**
   * Time from which on the events after the position were recorded, or the beginning of the oldest day of the log when
   * the cursor was issued, if that is later. Seconds since the epoch, by the clock of PostgreSQL.
   */
  sinceSeconds: number;
}

const CURSOR_PATTERN = /^([0-9a-f]{32})\.(\d{1,18})\.(\d{1,12})(?:\.(wev_[0-9A-Za-z]{27}))?$/;

export function parseCursor(text: string): FeedCursor | null {
  const [, generation, position, sinceSeconds, eventId = ''] = CURSOR_PATTERN.exec(text) ?? [];
  if (generation === undefined || position === undefined) return null;
  return { generation, position: BigInt(position), sinceSeconds: Number(sinceSeconds), eventId };
}

export function formatCursor({ generation, position, sinceSeconds, eventId }: FeedCursor): string {
  return `${generation}.${position}.${sinceSeconds}${eventId === '' ? '' : `.${eventId}`}`;
}

/** A history of the server. */
export interface FeedGeneration {
  id: string;
  /** Position up to which this generation has the events of the previous one. */
  firstPosition: bigint;
}

/** The beginning of the feed. */
export const FEED_START: FeedPosition = { position: 0n, eventId: '' };

/**
 * Returns where a page begins, or why the cursor cannot be used and where to continue instead. Events may then repeat,
 * but none is left out that the log still has.
 * @param server.generations all of them, the oldest first
 * @param server.end position that no transaction has reached
 * @param server.markedPosition latest recorded horizon
 * @param server.oldestSeconds beginning of the oldest day of the log
 */
export function resolveCursor(
  cursor: FeedCursor,
  server: {
    generations: readonly FeedGeneration[];
    end: bigint;
    markedPosition: bigint;
    oldestSeconds: number;
  },
): { from: FeedPosition } | { gone: string; continueAt: FeedPosition } {
  const { generations, end, markedPosition, oldestSeconds } = server;
  const index = generations.findIndex(({ id }) => id === cursor.generation);
  if (index === -1) return { gone: FOREIGN, continueAt: FEED_START };
  // The log has lost the day since the cursor was issued.
  if (cursor.sinceSeconds < oldestSeconds) return { gone: EXPIRED, continueAt: FEED_START };
  const { position, eventId } = cursor;
  // A copy of the disks that was started has the same history, and fewer transactions.
  const commonUntil = generations[index + 1]?.firstPosition ?? (position > end ? markedPosition : undefined);
  if (commonUntil === undefined || position <= commonUntil) return { from: { position, eventId } };
  return { gone: RESTORED, continueAt: { position: commonUntil, eventId: '' } };
}

const FOREIGN = 'The cursor is not of this feed, or the database was restored to an earlier state.';
const EXPIRED = 'The cursor has expired: events after it may no longer be in the log.';
const RESTORED = 'The database was restored, or has failed over, since shortly before the cursor.';
