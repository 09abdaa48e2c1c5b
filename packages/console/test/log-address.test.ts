import { expect, test } from '@jest/globals';
import {
  countPages,
  formatCount,
  formatExtent,
  hasFilters,
  localToMicros,
  NO_FILTERS,
  nextMicrosecond,
  pageFromText,
  readLogAddress,
  timeWindow,
  toLocalText,
  windowProblem,
  writeLogAddress,
} from '../src/webhook/log/log-address.ts';

const read = (text: string) => readLogAddress(new URLSearchParams(text));

test('the URL contains the filters and the page, and is parsed as it was serialized', () => {
  const address = {
    status: 'failed',
    eventType: 'job.run.errored',
    runId: '42',
    range: 'custom',
    from: '2026-01-31T19:28',
    to: '2026-01-31T20:00',
    page: 7,
    before: '1795168800000000',
  } as const;
  expect(read(writeLogAddress(address).toString())).toEqual(address);
  expect(hasFilters(address)).toBe(true);
});

test('the URL has no parameters for default values', () => {
  expect(writeLogAddress(NO_FILTERS).toString()).toBe('');
  expect(read('')).toEqual(NO_FILTERS);
  expect(hasFilters(NO_FILTERS)).toBe(false);
});

test('invalid parameters of the URL are ignored', () => {
  const text = 'status=lost&event=x&run=1e9&range=year&from=yesterday&page=-3&before=abc';
  expect(read(text)).toEqual(NO_FILTERS);
  expect(read('before=12').before).toBe('');
  expect(read('page=0').page).toBe(1);
  expect(read('page=99999999').page).toBe(1);
});

test('a range is converted to microseconds', () => {
  const at = (range: 'hour' | 'day' | 'week' | 'all') => timeWindow({ range, from: '', to: '' }, 1e12);
  expect(at('hour')).toEqual({ since: '999996400000000', until: '' });
  expect(at('day').since).toBe(String((1e12 - 86_400_000) * 1_000));
  expect(at('week').since).toBe(String((1e12 - 7 * 86_400_000) * 1_000));
  expect(at('all')).toEqual({ since: '', until: '' });
});

test('a local time of a field is converted to a timestamp and back', () => {
  const timeMs = new Date(2026, 0, 31, 19, 28).getTime();
  expect(toLocalText(timeMs)).toBe('2026-01-31T19:28');
  expect(localToMicros('2026-01-31T19:28')).toBe(String(timeMs * 1_000));
  expect(localToMicros('soon')).toBe('');
  expect(nextMicrosecond('1795168800000000')).toBe('1795168800000001');
});

test('a custom range is written into the URL in UTC, in any time zone', () => {
  const written = (from: string) => writeLogAddress({ ...NO_FILTERS, range: 'custom', from }).get('from');
  const timeMs = Date.UTC(2026, 0, 31, 19, 28, 7);
  expect(written(toLocalText(timeMs))).toBe('2026-01-31T19:28Z');
  expect(written(`${toLocalText(timeMs)}:07`)).toBe('2026-01-31T19:28:07Z');
  const { from } = read('range=custom&from=2026-01-31T19:28:07Z&to=2026-01-31T25:00Z');
  expect(localToMicros(from)).toBe(String(timeMs * 1_000));
  // A time without a zone is ambiguous.
  expect(read('range=custom&from=2026-01-31T19:28&to=2026-01-31T25:00Z')).toMatchObject({ from: '', to: '' });
});

test('a range that does not end after its start is a problem', () => {
  expect(windowProblem({ since: '2', until: '1' })).not.toBeNull();
  expect(windowProblem({ since: '2', until: '2' })).not.toBeNull();
  expect(windowProblem({ since: '1', until: '2' })).toBeNull();
  expect(windowProblem({ since: '', until: '' })).toBeNull();
});

test('a page number is limited to the last page, by the count of the API', () => {
  expect(countPages(0)).toBe(1);
  expect(countPages(26)).toBe(2);
  expect(countPages(1_000_000)).toBe(40_000);
  expect(pageFromText('99999', 100)).toBe(4);
  expect(pageFromText('0', 100)).toBe(1);
  expect(pageFromText(' 3 ', 100)).toBe(3);
  expect(pageFromText('x', 100)).toBeNull();
});

test('a count that has reached its limit is shown as a lower bound', () => {
  expect(formatCount(1_000_000)).toMatch(/^at least 1.000.000$/);
  expect(formatCount(50_000)).toMatch(/^at least 50.000$/);
  expect(formatCount(50_001)).toMatch(/^50.001$/);
  expect(formatCount(999)).toBe('999');
  expect(formatExtent({ page: 2, count: 25, totalCount: 51 })).toBe('26–50 of 51');
});
