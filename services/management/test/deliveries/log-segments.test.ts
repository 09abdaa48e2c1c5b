import { describe, expect, test } from '@jest/globals';
import {
  type LogCursor,
  type LogSegment,
  type Span,
  scanSegments,
  splitIntoSegments,
} from '../../src/deliveries/log-segments.ts';

const HOUR = 3_600_000_000n;
const micros = (text: string) => BigInt(Date.parse(text)) * 1000n;
const SPAN: Span = { firstDay: '2026-11-01', lastDay: '2026-11-21', since: null, until: null };

interface Row {
  day: string;
  createdAt: bigint;
  id: string;
}

const isIn = ({ firstDay, lastDay, since, endPosition }: LogSegment, row: Row) =>
  row.day >= firstDay &&
  row.day <= lastDay &&
  (since === null || row.createdAt >= since) &&
  (endPosition === null ||
    row.createdAt < endPosition.createdAt ||
    (row.createdAt === endPosition.createdAt && row.id < endPosition.id));

/** Creates a log with `perHour` rows in each hour; of 20, one is created 30 h late, and one 20 h early. */
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
async function readAll(rows: readonly Row[], limits: { perReadMax: number; totalMax: number }, span = SPAN) {
  const found: Row[][] = [];
  const scans: number[] = [];
  for (let cursor: LogCursor | null = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
    let read = 0;
    cursor = await scanSegments<Row[]>(splitIntoSegments(span, cursor), {
      limits,
      read: async (segment, max) => {
        const matchingRows = rows.filter((row) => isIn(segment, row));
        read += Math.min(matchingRows.length, max);
        return { count: matchingRows.length, found: matchingRows };
      },
      accept: (batch) => {
        found.push(batch);
        return false;
      },
    });
    scans.push(read);
  }
  return { found, scans };
}

describe('a log that is read in segments', () => {
  test.each([
    ['all at once', 1, { perReadMax: 100_000, totalMax: 100_000 }],
    ['day by day', 3, { perReadMax: 100, totalMax: 100_000 }],
    ['in small pieces', 20, { perReadMax: 10, totalMax: 100_000 }],
    ['in many scans', 20, { perReadMax: 100, totalMax: 400 }],
  ])('returns every row once, the newest segments first, when it is read %s', async (_, perHour, limits) => {
    const rows = logOf(perHour);
    const { found } = await readAll(rows, limits);
    const read = found.flat();
    expect(read).toHaveLength(rows.length);
    expect(new Set(read).size).toBe(rows.length);
    const key = ({ day, createdAt }: Row) => `${day} ${createdAt}`;
    const bounds = found.filter((batch) => batch.length > 0).map((batch) => batch.map(key).sort());
    for (const [index, newer] of bounds.entries()) {
      const older = bounds[index + 1];
      if (older) expect((older.at(-1) ?? '') <= (newer[0] ?? '')).toBe(true);
    }
  });

  test('is read from the end of the window, without the rest of that day', async () => {
    const noon = { ...SPAN, lastDay: '2026-11-22', until: micros('2026-11-21T12:00Z') };
    const rows = logOf(20).filter(({ createdAt }) => createdAt < noon.until);
    const { found } = await readAll(rows, { perReadMax: 10, totalMax: 10_000 }, noon);
    const firstBatch = found.findIndex((batch) => batch.length > 0);
    expect(firstBatch).toBeLessThan(3);
    expect(found[firstBatch]?.some(({ createdAt }) => createdAt > micros('2026-11-21T11:50Z'))).toBe(true);
  });

  test('is read by scans that end soon after their limit of rows', async () => {
    const { scans } = await readAll(logOf(20), { perReadMax: 100, totalMax: 400 });
    expect(Math.max(...scans)).toBeLessThanOrEqual(400 + 5 * 100);
    expect(scans.length).toBeGreaterThan(10);
  });

  test('returns all rows of one time, even above the limit', async () => {
    const createdAt = micros('2026-11-20T10:00Z');
    const rows = Array.from({ length: 900 }, (_, number) => ({
      day: '2026-11-20',
      createdAt,
      id: `wdl_${number}`,
    }));
    const { found } = await readAll(rows, { perReadMax: 100, totalMax: 300 });
    expect(found.flat()).toHaveLength(900);
  });

  test('has segments of single days at the ends of the window', () => {
    const days = (span: Partial<Span>, from: LogCursor | null = null) =>
      splitIntoSegments({ ...SPAN, ...span }, from).map(({ firstDay, lastDay }) =>
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
