import { expect, test } from '@jest/globals';
import type { Delivery } from '../src/api/types.ts';
import {
  findNewIds,
  type LogState,
  mergeTail,
  selectVisibleRows,
  tailSince,
} from '../src/webhook/log/live-log.ts';

const PAGE = 3;
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

test('inserts new rows at the top of the log', () => {
  const view = selectVisibleRows(
    rows(3, 2, 1),
    { latest: rows(5, 4, 3), latestCount: 2, shownCount: 0 },
    true,
  );
  expect(ids(view.rows)).toEqual(['d5', 'd4', 'd3']);
  expect(view.waitingCount).toBe(0);
});

test('updates rows in place in the middle of the log, and counts the new ones', () => {
  const before = [row(3, { status: 'pending' }), row(2), row(1)];
  const view = selectVisibleRows(before, { latest: rows(5, 4, 3), latestCount: 2, shownCount: 0 }, false);
  expect(ids(view.rows)).toEqual(['d3', 'd2', 'd1']);
  expect(view.rows[0]?.status).toBe('delivered');
  expect(view.waitingCount).toBe(2);
});

test('counts more new rows than a page holds', () => {
  const view = selectVisibleRows(
    rows(3, 2, 1),
    { latest: rows(90, 89, 88), latestCount: 87, shownCount: 0 },
    false,
  );
  expect(view.waitingCount).toBe(87);
});

test('shows the latest rows on an empty page and after the first read', () => {
  const latest = { latest: rows(1), latestCount: 0, shownCount: 0 };
  expect(ids(selectVisibleRows([], latest, false).rows)).toEqual(['d1']);
  expect(ids(selectVisibleRows(null, latest, false).rows)).toEqual(['d1']);
});

test('identifies new rows by their ids', () => {
  expect([...findNewIds(rows(2, 1), rows(4, 3, 2))]).toEqual(['d4', 'd3']);
});

test('starts a partial read at the oldest row, or later if the range does', () => {
  expect(tailSince([row(7), row(3), row(5)], '')).toBe('1003');
  expect(tailSince([row(7), row(3)], '1005')).toBe('1005');
  expect(tailSince([row(7)], '10')).toBe('1007');
  expect(tailSince([], '10')).toBe('10');
});

test('continues the count from the new rows, without counting the log again', () => {
  const after = mergeTail(state(rows(3, 2, 1), 500), { rows: rows(5, 4, 3), totalCount: 5 }, PAGE);
  expect(after).toMatchObject({ totalCount: 502, arrivedCount: 2, fullReadAtMs: 5 });
  expect(ids(after?.rows ?? [])).toEqual(['d5', 'd4', 'd3']);
});

test('does not raise a count that has reached its limit', () => {
  const after = mergeTail(state(rows(3, 2, 1), 1_000_000), { rows: rows(4, 3, 2), totalCount: 4 }, PAGE);
  expect(after?.totalCount).toBe(1_000_000);
});

test('requires a full read for a page that lost a row or has only new rows', () => {
  const before = state(rows(3, 2, 1), 500);
  expect(mergeTail(before, { rows: rows(3, 1), totalCount: 2 }, PAGE)).toBeNull();
  expect(mergeTail(before, { rows: rows(9, 8, 7), totalCount: 9 }, PAGE)).toBeNull();
  const all = state(rows(3, 2), 2);
  expect(mergeTail(all, { rows: rows(3), totalCount: 1 }, PAGE)?.totalCount).toBe(1);
});
