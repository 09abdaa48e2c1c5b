import { expect, test } from '@jest/globals';
import type { Delivery } from '../src/api/types.ts';
import {
  findNewIds,
  type LogState,
  mergeTail,
  selectVisibleRows,
  tailSince,
} from '../src/webhook/log/live-log.ts';

const PAGE_SIZE = 3;
const row = (id: number, more: Partial<Delivery> = {}) =>
  ({ id: `d${id}`, created_at: String(1_000 + id), status: 'delivered', ...more }) as Delivery;
const rows = (...ids: number[]) => ids.map((id) => row(id));
const ids = (list: readonly Delivery[]) => list.map(({ id }) => id);
const state = (list: Delivery[], totalCount: number): LogState => ({
  rows: list,
  totalCount,
  arrivedCount: 0,
  fullReadAtMs: 5,
});

test('at the top of the log, new rows are inserted', () => {
  const view = selectVisibleRows(
    rows(3, 2, 1),
    { latest: rows(5, 4, 3), latestCount: 2, shownCount: 0 },
    true,
  );
  expect(ids(view.rows)).toEqual(['d5', 'd4', 'd3']);
  expect(view.waitingCount).toBe(0);
});

test('in the middle of the log, rows are updated in place and new ones are counted', () => {
  const before = [row(3, { status: 'pending' }), row(2), row(1)];
  const view = selectVisibleRows(before, { latest: rows(5, 4, 3), latestCount: 2, shownCount: 0 }, false);
  expect(ids(view.rows)).toEqual(['d3', 'd2', 'd1']);
  expect(view.rows[0]?.status).toBe('delivered');
  expect(view.waitingCount).toBe(2);
});

test('new rows that exceed the size of a page are all counted', () => {
  const view = selectVisibleRows(
    rows(3, 2, 1),
    { latest: rows(90, 89, 88), latestCount: 87, shownCount: 0 },
    false,
  );
  expect(view.waitingCount).toBe(87);
});

test('an empty page and the first read show the latest rows', () => {
  const latest = { latest: rows(1), latestCount: 0, shownCount: 0 };
  expect(ids(selectVisibleRows([], latest, false).rows)).toEqual(['d1']);
  expect(ids(selectVisibleRows(null, latest, false).rows)).toEqual(['d1']);
});

test('new rows are identified by their ids', () => {
  expect([...findNewIds(rows(2, 1), rows(4, 3, 2))]).toEqual(['d4', 'd3']);
});

test('a partial read starts at the oldest row, or later if the range does', () => {
  expect(tailSince([row(7), row(3), row(5)], '')).toBe('1003');
  expect(tailSince([row(7), row(3)], '1005')).toBe('1005');
  expect(tailSince([row(7)], '10')).toBe('1007');
  expect(tailSince([], '10')).toBe('10');
});

test('a partial read adds its new rows to the count, without counting the log again', () => {
  const after = mergeTail(state(rows(3, 2, 1), 500), { rows: rows(5, 4, 3), totalCount: 5 }, PAGE_SIZE);
  expect(after).toMatchObject({ totalCount: 502, arrivedCount: 2, fullReadAtMs: 5 });
  expect(ids(after?.rows ?? [])).toEqual(['d5', 'd4', 'd3']);
});

test('a partial read does not raise a count that has reached its limit', () => {
  const after = mergeTail(state(rows(3, 2, 1), 1_000_000), { rows: rows(4, 3, 2), totalCount: 4 }, PAGE_SIZE);
  expect(after?.totalCount).toBe(1_000_000);
});

test('a full page that lost a row or has only new rows requires a full read', () => {
  const before = state(rows(3, 2, 1), 500);
  expect(mergeTail(before, { rows: rows(3, 1), totalCount: 2 }, PAGE_SIZE)).toBeNull();
  expect(mergeTail(before, { rows: rows(9, 8, 7), totalCount: 9 }, PAGE_SIZE)).toBeNull();
  const all = state(rows(3, 2), 2);
  expect(mergeTail(all, { rows: rows(3), totalCount: 1 }, PAGE_SIZE)?.totalCount).toBe(1);
});
