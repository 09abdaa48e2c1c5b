import { DAY_MICROS, dayOf, LAST_MICROS } from './page-seek.ts';

/**
 * A part of a log, in the order of its pages (the newest day first, in it the newest delivery): whole days, or what of
 * one day was created in a span. Times are microseconds since the epoch.
 */
export interface Stretch {
  /** `YYYY-MM-DD`; the same as `lastDay` where `since` or `before` bounds it. */
  firstDay: string;
  lastDay: string;
  /** Created at or after it; null where the day itself ends it. */
  since: bigint | null;
  before: Place | null;
}

/** Just before a delivery, or with an empty `id` before a moment. */
export interface Place {
  createdAt: bigint;
  id: string;
}

/** From where a log is read on: a place in a day. */
export interface DayPlace extends Place {
  day: string;
}

export interface Span {
  /** The days that there may be deliveries of. */
  firstDay: string;
  lastDay: string;
  /** The window asked for; null where it is open. */
  since: bigint | null;
  until: bigint | null;
}

/**
 * The stretches of a window, newest first. At its ends they are single days, in which an index leads to a time; in
 * between there is one for all days.
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
  // What is read begins at the end of the window, not at that of its day.
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
  /** Reads a stretch. @param max what is more is not read: `count` is above it then, and `found` is not looked at */
  read(stretch: Stretch, max: number): Promise<{ count: number; found: Found }>;
  /** Takes what a stretch had; true when that is enough. */
  take(found: Found): boolean;
  /** Rows that one statement reads at most, and about how many all of them do. */
  limits: { atOnce: number; inAll: number };
}

/**
 * Reads stretches one after another. One that has too much is read in pieces, the newest first, as wide as what was read
 * before lets expect. Answers from where on there is more to read, or null at the end.
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
/** A millisecond is not parted further: what is fanned out together has one time. */
const WIDTH_MIN = 1_000n;
const AT_ONE_MOMENT_MAX = 1_000_000;

/** Its newest part, at most so wide, and what is left of it. */
function newestPart(stretch: Stretch, width: bigint): [Stretch, Stretch | null] {
  const { firstDay, lastDay } = stretch;
  if (firstDay !== lastDay || widthOf(stretch) <= width) return [stretch, null];
  const cut = endOf(stretch) - width;
  return [
    { ...stretch, since: cut },
    { ...stretch, before: { createdAt: cut, id: '' } },
  ];
}

/** Several days one by one, the oldest first, as they lie on a stack. */
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
