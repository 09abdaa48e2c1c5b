import { describe, expect, test } from '@jest/globals';
import { type DayPlace, type Span, type Stretch, stretchesOf, walk } from '../../src/deliveries/stretches.ts';

const HOUR = 3_600_000_000n;
const micros = (text: string) => BigInt(Date.parse(text)) * 1000n;
const SPAN: Span = { firstDay: '2026-11-01', lastDay: '2026-11-21', since: null, until: null };

interface Row {
  day: string;
  createdAt: bigint;
  id: string;
}

const isIn = ({ firstDay, lastDay, since, before }: Stretch, row: Row) =>
  row.day >= firstDay &&
  row.day <= lastDay &&
  (since === null || row.createdAt >= since) &&
  (before === null ||
    row.createdAt < before.createdAt ||
    (row.createdAt === before.createdAt && row.id < before.id));

/** Creates a log with `perHour` rows in each hour, some of them created long before or after their day. */
function logOf(perHour: number): Row[] {
  const rows: Row[] = [];
  for (let hour = micros('2026-11-01'); hour < micros('2026-11-21T12:00Z'); hour += HOUR)
    for (let number = 0; number < perHour; number += 1) {
      const createdAt = hour + (BigInt(number) * HOUR) / BigInt(perHour);
      const day = new Date(Number(createdAt / 1000n)).toISOString().slice(0, 10);
      const moved = number % 20 === 3 ? 30n * HOUR : number % 20 === 4 ? -20n * HOUR : 0n;
      rows.push({ day, createdAt: createdAt + moved, id: `wdl_${number}` });
    }
  return rows;
}

/** Reads the log in as many scans as it takes; returns the rows in order, and the number of rows read by each scan. */
async function readAll(rows: readonly Row[], limits: { atOnce: number; inAll: number }, span = SPAN) {
  const found: Row[][] = [];
  const walks: number[] = [];
  for (let from: DayPlace | null = null, isFirst = true; isFirst || from !== null; isFirst = false) {
    let read = 0;
    from = await walk<Row[]>(stretchesOf(span, from), {
      limits,
      read: async (stretch, max) => {
        const within = rows.filter((row) => isIn(stretch, row));
        read += Math.min(within.length, max);
        return { count: within.length, found: within };
      },
      take: (some) => {
        found.push(some);
        return false;
      },
    });
    walks.push(read);
  }
  return { found, walks };
}

describe('a log that is read in segments', () => {
  test.each([
    ['all at once', 1, { atOnce: 100_000, inAll: 100_000 }],
    ['day by day', 3, { atOnce: 100, inAll: 100_000 }],
    ['in small pieces', 20, { atOnce: 10, inAll: 100_000 }],
    ['in many walks', 20, { atOnce: 100, inAll: 400 }],
  ])('returns every row once, the newest segments first, when it is read %s', async (_, perHour, limits) => {
    const rows = logOf(perHour);
    const { found } = await readAll(rows, limits);
    const read = found.flat();
    expect(read).toHaveLength(rows.length);
    expect(new Set(read).size).toBe(rows.length);
    const key = ({ day, createdAt }: Row) => `${day} ${createdAt}`;
    const bounds = found.filter((some) => some.length > 0).map((some) => some.map(key).sort());
    for (const [index, newer] of bounds.entries()) {
      const older = bounds[index + 1];
      if (older) expect((older.at(-1) ?? '') <= (newer[0] ?? '')).toBe(true);
    }
  });

  test('is read from the end of the window, without the rest of that day', async () => {
    const noon = { ...SPAN, lastDay: '2026-11-22', until: micros('2026-11-21T12:00Z') };
    const rows = logOf(20).filter(({ createdAt }) => createdAt < noon.until);
    const { found } = await readAll(rows, { atOnce: 10, inAll: 10_000 }, noon);
    const first = found.findIndex((some) => some.length > 0);
    expect(first).toBeLessThan(3);
    expect(found[first]?.some(({ createdAt }) => createdAt > micros('2026-11-21T11:50Z'))).toBe(true);
  });

  test('is read by scans that end soon after their limit of rows', async () => {
    const { walks } = await readAll(logOf(20), { atOnce: 100, inAll: 400 });
    expect(Math.max(...walks)).toBeLessThanOrEqual(400 + 5 * 100);
    expect(walks.length).toBeGreaterThan(10);
  });

  test('returns all rows of one time, even above the limit', async () => {
    const createdAt = micros('2026-11-20T10:00Z');
    const rows = Array.from({ length: 900 }, (_, number) => ({
      day: '2026-11-20',
      createdAt,
      id: `wdl_${number}`,
    }));
    const { found } = await readAll(rows, { atOnce: 100, inAll: 300 });
    expect(found.flat()).toHaveLength(900);
  });

  test('has segments of single days at the ends of the window', () => {
    const days = (span: Partial<Span>, from: DayPlace | null = null) =>
      stretchesOf({ ...SPAN, ...span }, from).map(({ firstDay, lastDay }) =>
        firstDay === lastDay ? firstDay.slice(-2) : `${firstDay.slice(-2)}-${lastDay.slice(-2)}`,
      );
    expect(days({})).toEqual(['21', '20', '01-19']);
    expect(days({ firstDay: '2026-11-20' })).toEqual(['21', '20']);
    expect(days({ firstDay: '2026-11-09', since: micros('2026-11-10T12:00Z') })).toEqual([
      '21',
      '20',
      '12-19',
      '11',
      '10',
      '09',
    ]);
    expect(days({}, { day: '2026-11-15', createdAt: 1n, id: '' })).toEqual(['15', '14', '01-13']);
    expect(days({ firstDay: '2026-11-22' })).toEqual([]);
  });
});
