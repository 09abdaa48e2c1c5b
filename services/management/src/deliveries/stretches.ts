import { DAY_MICROS, dayOf, LAST_MICROS } from './page-seek.ts';

/**
 * A segment of a log in the order of its pages (newest day first, in it the newest delivery): entire days, or the
 * deliveries of one day that were created in a time span. Times are microseconds since the epoch.
 */
export interface Stretch {
  /** `YYYY-MM-DD`; equal to `lastDay` if `since` or `before` is set. */
  firstDay: string;
  lastDay: string;
  /** Earliest creation, inclusive; null if the segment begins with its day. */
  since: bigint | null;
  before: Place | null;
}

/** Position immediately before a delivery, or, with an empty `id`, before a time. */
export interface Place {
  createdAt: bigint;
  id: string;
}

/** Cursor of a log: a position in a day. */
export interface DayPlace extends Place {
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
export function stretchesOf({ firstDay, lastDay, since, until }: Span, from: DayPlace | null): Stretch[] {
  const days = (first: string, last: string): Stretch => ({
    firstDay: first,
    lastDay: last,
    since: null,
    before: null,
  });
  const newest = from !== null && from.day < lastDay ? from.day : lastDay;
  const stretches: Stretch[] = [];
  let day = newest;
  // Reading begins at the end of the window, which may be before the end of its day.
  const beforeOf = (day: string): Place | null => {
    if (from?.day === day) return { createdAt: from.createdAt, id: from.id };
    return until !== null && until < startOf(day) + DAY_MICROS ? { createdAt: until, id: '' } : null;
  };
  const single = (until: string) => {
    for (; day >= firstDay && day >= until; day = dayBefore(day))
      stretches.push({ ...days(day, day), before: beforeOf(day) });
  };
  const highEnd = dayOf((until ?? startOf(newest)) - DAY_MICROS);
  single(newest);
  single(highEnd);
  const lowEnd = since === null ? firstDay : dayOf(since + 2n * DAY_MICROS);
  if (day >= lowEnd && day >= firstDay) {
    stretches.push(days(lowEnd < firstDay ? firstDay : lowEnd, day));
    day = dayBefore(lowEnd);
  }
  single(firstDay);
  return stretches;
}

export interface Walk<Found> {
  /** Reads a segment. @param max limit of rows: if there are more, `count` exceeds it and `found` is ignored */
  read(stretch: Stretch, max: number): Promise<{ count: number; found: Found }>;
  /** Accepts the rows of a segment; returns true if they suffice. */
  take(found: Found): boolean;
  /** Maximum number of rows of one statement, and approximate maximum of all. */
  limits: { atOnce: number; inAll: number };
}

/**
 * Reads segments one after another. A segment with too many rows is read in parts, newest first, whose width is
 * estimated from the previous parts. Returns the cursor of the remaining rows, or null at the end.
 */
export async function walk<Found>(
  stretches: readonly Stretch[],
  { read, take, limits }: Walk<Found>,
): Promise<DayPlace | null> {
  const left = [...stretches].reverse();
  let readInAll = 0;
  let width = DAY_MICROS;
  let hasMoved = false;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [piece, rest] = newestPart(next, width);
    if (rest !== null) left.push(rest);
    const max = widthOf(piece) > WIDTH_MIN ? limits.atOnce : AT_ONE_MOMENT_MAX;
    const { count, found } = await read(piece, max);
    readInAll += Math.min(count, max);
    if (count > max && widthOf(piece) > WIDTH_MIN) {
      left.push(...byDay(piece));
      if (piece.firstDay === piece.lastDay) width = widthOf(piece) / NARROWER;
    } else {
      hasMoved = true;
      if (take(found)) return placeOf(left.at(-1));
      if (count < limits.atOnce / Number(NARROWER)) width *= NARROWER;
    }
    if (readInAll >= limits.inAll && hasMoved) return placeOf(left.at(-1));
  }
  return null;
}

const NARROWER = 8n;
/** A part is not narrower than a millisecond, since all deliveries of a fan-out have the same time. */
const WIDTH_MIN = 1_000n;
const AT_ONE_MOMENT_MAX = 1_000_000;

/** Splits off the newest part, at most as wide as `width`; returns it and the rest. */
function newestPart(stretch: Stretch, width: bigint): [Stretch, Stretch | null] {
  const { firstDay, lastDay } = stretch;
  if (firstDay !== lastDay || widthOf(stretch) <= width) return [stretch, null];
  const cut = endOf(stretch) - width;
  return [
    { ...stretch, since: cut },
    { ...stretch, before: { createdAt: cut, id: '' } },
  ];
}

/** Splits a segment into days, oldest first, because they are pushed on a stack. */
function byDay(stretch: Stretch): Stretch[] {
  const { firstDay, lastDay } = stretch;
  if (firstDay === lastDay) return [stretch];
  const days: Stretch[] = [];
  for (let day = firstDay; day <= lastDay; day = dayOf(startOf(day) + DAY_MICROS))
    days.push({ firstDay: day, lastDay: day, since: null, before: null });
  return days;
}

function widthOf(stretch: Stretch): bigint {
  if (stretch.firstDay !== stretch.lastDay) return 2n * DAY_MICROS;
  const width = endOf(stretch) - (stretch.since ?? startOf(stretch.firstDay));
  return width > 0n ? width : 0n;
}

function endOf({ lastDay, before }: Stretch): bigint {
  const end = startOf(lastDay) + DAY_MICROS;
  return before !== null && before.createdAt < end ? before.createdAt : end;
}

function placeOf(stretch: Stretch | undefined): DayPlace | null {
  if (stretch === undefined) return null;
  return { day: stretch.lastDay, ...(stretch.before ?? { createdAt: LAST_MICROS, id: '' }) };
}

function startOf(day: string): bigint {
  return BigInt(Date.parse(`${day}T00:00Z`)) * 1000n;
}

function dayBefore(day: string): string {
  return dayOf(startOf(day) - DAY_MICROS);
}
