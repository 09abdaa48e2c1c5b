import { DAY_MICROS, dayOf, LAST_MICROS } from './page-locator.ts';

/**
 * A segment of a log in the order of its pages (newest day first, in it the newest delivery): entire days, or the
 * deliveries of one day that were created in a time span. Times are microseconds since the epoch.
 */
export interface LogSegment {
  /** `YYYY-MM-DD`; equal to `lastDay` if `since` or `endPosition` is set. */
  firstDay: string;
  lastDay: string;
  /** Earliest creation, inclusive; null if the segment begins with its day. */
  since: bigint | null;
  endPosition: LogPosition | null;
}

/** Exclusive upper bound: deliveries older than this one, or, with an empty `id`, created before this time. */
export interface LogPosition {
  createdAt: bigint;
  id: string;
}

/** Cursor of a log: a position in a day. */
export interface LogCursor extends LogPosition {
  day: string;
}

export interface Span {
  /** Days that may have deliveries. */
  firstDay: string;
  lastDay: string;
  /** Requested window; null for no bound. */
  since: bigint | null;
  until: bigint | null;
}

/**
 * Returns the segments of a window, newest first. At the ends of the window they are single days, in which an index
 * finds a time; all days in between are one segment.
 */
export function splitIntoSegments(
  { firstDay, lastDay, since, until }: Span,
  cursor: LogCursor | null,
): LogSegment[] {
  const createSegment = (first: string, last: string): LogSegment => ({
    firstDay: first,
    lastDay: last,
    since: null,
    endPosition: null,
  });
  const newest = cursor !== null && cursor.day < lastDay ? cursor.day : lastDay;
  const segments: LogSegment[] = [];
  let day = newest;
  // Reading begins at the end of the window, which may be before the end of its day.
  const endPositionOf = (day: string): LogPosition | null => {
    if (cursor?.day === day) return { createdAt: cursor.createdAt, id: cursor.id };
    return until !== null && until < startOf(day) + DAY_MICROS ? { createdAt: until, id: '' } : null;
  };
  const addSingleDays = (until: string) => {
    for (; day >= firstDay && day >= until; day = previousDay(day))
      segments.push({ ...createSegment(day, day), endPosition: endPositionOf(day) });
  };
  const highEnd = dayOf((until ?? startOf(newest)) - DAY_MICROS);
  addSingleDays(newest);
  addSingleDays(highEnd);
  const lowEnd = since === null ? firstDay : dayOf(since + 2n * DAY_MICROS);
  if (day >= lowEnd && day >= firstDay) {
    segments.push(createSegment(lowEnd < firstDay ? firstDay : lowEnd, day));
    day = previousDay(lowEnd);
  }
  addSingleDays(firstDay);
  return segments;
}

export interface SegmentScan<Rows> {
  /** Reads a segment. @param max limit of rows: if there are more, `count` exceeds it and `found` is ignored */
  read(segment: LogSegment, max: number): Promise<{ count: number; found: Rows }>;
  /** Accepts the rows of a segment; returns true if they suffice. */
  accept(found: Rows): boolean;
  /** Maximum number of rows that one statement reads, and approximate maximum of all statements. */
  limits: { perReadMax: number; totalMax: number };
}

/**
 * Reads segments one after another. A segment with too many rows is read in parts, newest first, whose width is
 * estimated from the previous parts. Returns the cursor of the remaining rows, or null at the end.
 */
export async function scanSegments<Rows>(
  segments: readonly LogSegment[],
  { read, accept, limits }: SegmentScan<Rows>,
): Promise<LogCursor | null> {
  const remaining = [...segments].reverse();
  let readCount = 0;
  let width = DAY_MICROS;
  let hasProgress = false;
  for (let next = remaining.pop(); next !== undefined; next = remaining.pop()) {
    const [part, rest] = newestPart(next, width);
    if (rest !== null) remaining.push(rest);
    const max = widthOf(part) > WIDTH_MIN ? limits.perReadMax : SAME_TIMESTAMP_MAX;
    const { count, found } = await read(part, max);
    readCount += Math.min(count, max);
    if (count > max && widthOf(part) > WIDTH_MIN) {
      remaining.push(...splitByDay(part));
      if (part.firstDay === part.lastDay) width = widthOf(part) / NARROWING_FACTOR;
    } else {
      hasProgress = true;
      if (accept(found)) return cursorOf(remaining.at(-1));
      if (count < limits.perReadMax / Number(NARROWING_FACTOR)) width *= NARROWING_FACTOR;
    }
    if (readCount >= limits.totalMax && hasProgress) return cursorOf(remaining.at(-1));
  }
  return null;
}

const NARROWING_FACTOR = 8n;
/** A part of a millisecond or less is not divided, since all deliveries of a fan-out have the same time. */
const WIDTH_MIN = 1_000n;
const SAME_TIMESTAMP_MAX = 1_000_000;

/** Splits the newest part, of `width`, off a segment of one day; returns it and the rest. Several days stay whole. */
function newestPart(segment: LogSegment, width: bigint): [LogSegment, LogSegment | null] {
  const { firstDay, lastDay } = segment;
  if (firstDay !== lastDay || widthOf(segment) <= width) return [segment, null];
  const splitAt = endOf(segment) - width;
  return [
    { ...segment, since: splitAt },
    { ...segment, endPosition: { createdAt: splitAt, id: '' } },
  ];
}

/** Splits a segment into days, oldest first, because they are pushed on a stack. */
function splitByDay(segment: LogSegment): LogSegment[] {
  const { firstDay, lastDay } = segment;
  if (firstDay === lastDay) return [segment];
  const daySegments: LogSegment[] = [];
  for (let day = firstDay; day <= lastDay; day = dayOf(startOf(day) + DAY_MICROS))
    daySegments.push({ firstDay: day, lastDay: day, since: null, endPosition: null });
  return daySegments;
}

function widthOf(segment: LogSegment): bigint {
  if (segment.firstDay !== segment.lastDay) return 2n * DAY_MICROS;
  const width = endOf(segment) - (segment.since ?? startOf(segment.firstDay));
  return width > 0n ? width : 0n;
}

function endOf({ lastDay, endPosition }: LogSegment): bigint {
  const end = startOf(lastDay) + DAY_MICROS;
  return endPosition !== null && endPosition.createdAt < end ? endPosition.createdAt : end;
}

function cursorOf(segment: LogSegment | undefined): LogCursor | null {
  if (segment === undefined) return null;
  return { day: segment.lastDay, ...(segment.endPosition ?? { createdAt: LAST_MICROS, id: '' }) };
}

function startOf(day: string): bigint {
  return BigInt(Date.parse(`${day}T00:00Z`)) * 1000n;
}

function previousDay(day: string): string {
  return dayOf(startOf(day) - DAY_MICROS);
}
