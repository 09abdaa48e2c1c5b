import { describe, expect, test } from '@jest/globals';
import type { RunEvent } from '../src/api/types.ts';
import { barLabel, brushKey, formatSpan, normalizeBrush, toTimeSpan } from '../src/events/brush.ts';
import {
  hasEventFilters,
  isFilter,
  NO_EVENT_FILTERS,
  PRESETS,
  readEventsAddress,
  toEventsQuery,
  windowUntilNow,
  writeEventsAddress,
} from '../src/events/events-address.ts';
import { fromFieldValue, readUtc, toFieldValue, utcText } from '../src/events/utc.ts';
import { hasRunFilters, readRunsAddress, writeRunsAddress } from '../src/runs/runs-address.ts';
import { describeMatches, formatRunDuration } from '../src/wording/runs.ts';

const WEBHOOK = 'wsu_2Zk0fGq5mH4s8JrXc1VbNwTyUeA';
const EVENT = 'wev_2Zk0fHXpQ1aBcDeFgHiJkLmNoPq';

describe('times in URLs', () => {
  test.each([
    ['2026-01-31T19:28Z', '2026-01-31T19:28Z'],
    ['2026-01-31T19:28:00.000Z', '2026-01-31T19:28Z'],
    ['2026-01-31T19:28:07Z', '2026-01-31T19:28:07Z'],
    ['2026-01-31T19:28', ''],
    ['2026-01-31T19:28+01:00', ''],
    ['2026-13-31T19:28Z', ''],
    ['yesterday', ''],
  ])('%s is read as "%s"', (text, read) => expect(readUtc(text)).toBe(read));

  test('are shown in fields in UTC, in any time zone', () => {
    expect(toFieldValue('2026-01-31T19:28Z')).toBe('2026-01-31T19:28');
    expect(fromFieldValue('2026-01-31T19:28:05')).toBe('2026-01-31T19:28:05Z');
    expect(fromFieldValue('')).toBe('');
    expect(utcText(Date.UTC(2026, 0, 31, 19, 28, 5, 900))).toBe('2026-01-31T19:28:05Z');
  });
});

describe('URL of the events page', () => {
  const address = {
    from: '2026-01-31T19:28Z',
    to: '2026-02-01T00:00:01Z',
    status: 'failed',
    event: 'job.run.errored',
    webhook: WEBHOOK,
    job: '12',
    run: '2482',
    eventId: EVENT,
    code: '504',
    error: 'timeout',
    slower: '1000',
    faster: '20000',
  } as const;

  test('is parsed as it was serialized, with readable times', () => {
    const text = writeEventsAddress(address);
    expect(text).toContain('from=2026-01-31T19:28Z&to=2026-02-01T00:00:01Z&status=failed');
    expect(readEventsAddress(new URLSearchParams(text))).toEqual(address);
    expect(writeEventsAddress({ ...NO_EVENT_FILTERS, from: address.from, to: '' })).toBe(
      'from=2026-01-31T19:28Z',
    );
  });

  test('ignores invalid values', () => {
    const text = 'from=now&status=lost&webhook=x&job=-1&code=2000&error=A&slower=1.5&eventId=wev_1&event=run';
    expect(readEventsAddress(new URLSearchParams(text))).toEqual({ ...NO_EVENT_FILTERS, from: '', to: '' });
    expect(isFilter('code', '20x')).toBe(false);
    expect(isFilter('code', '')).toBe(true);
  });

  test('makes the query of the API, and none for a range that does not end after its start', () => {
    expect(toEventsQuery(address)).toMatchObject({
      since: address.from,
      subscription_id: WEBHOOK,
      run_id: 2482,
      http_status_code: 504,
      duration_min_ms: 1_000,
    });
    expect(toEventsQuery({ ...address, to: address.from })).toBeNull();
    expect(hasEventFilters({ ...NO_EVENT_FILTERS, from: address.from, to: '' })).toBe(false);
    expect(hasEventFilters(address)).toBe(true);
  });

  test('replaces a preset by the resulting start', () => {
    const now = Date.UTC(2026, 0, 31, 19, 28, 45);
    expect(PRESETS.map(({ ms }) => windowUntilNow(ms, now).from)).toEqual([
      '2026-01-31T18:28Z',
      '2026-01-31T13:28Z',
      '2026-01-30T19:28Z',
      '2026-01-24T19:28Z',
      '2026-01-01T19:28Z',
    ]);
  });
});

test('the URL of the runs page is parsed as it was serialized', () => {
  const address = { search: '2482', status: 'Errored', from: '2026-01-31T19:28Z', to: '', page: 3 } as const;
  expect(readRunsAddress(writeRunsAddress(address))).toEqual(address);
  expect(readRunsAddress(new URLSearchParams('status=done&page=0&to=x'))).toEqual({
    search: '',
    status: '',
    from: '',
    to: '',
    page: 1,
  });
  expect(hasRunFilters(address)).toBe(true);
  expect(hasRunFilters({ ...address, search: '', status: '', from: '' })).toBe(false);
});

describe('bars of the histogram', () => {
  const start = (hour: number) => ({ start: String(Date.UTC(2026, 0, 31, hour) * 1_000) });
  const bars = [start(21), start(22), start(23)];

  test('can be selected in either direction', () => {
    expect(normalizeBrush({ anchor: 5, head: 2 })).toEqual({ first: 2, last: 5 });
    const { fromMs, toMs } = toTimeSpan(bars, 3_600, { anchor: 2, head: 1 });
    expect([fromMs, toMs]).toEqual([Date.UTC(2026, 0, 31, 22), Date.UTC(2026, 1, 1)]);
    expect(formatSpan(fromMs, toMs)).toMatch(/22:00 to .*00:00 UTC$/);
    expect(formatSpan(fromMs, fromMs + 1_800_000)).toMatch(/22:00 to 22:30 UTC$/);
    expect(barLabel(fromMs, 3_600_000)).toBe('22:00');
    expect(barLabel(fromMs, 30 * 86_400_000)).toContain('31');
  });

  test.each([
    ['ArrowLeft', false, 0, { kind: 'move', to: 0 }],
    ['ArrowRight', true, 1, { kind: 'extend', to: 2 }],
    ['End', true, 0, { kind: 'extend', to: 2 }],
    ['Home', false, 2, { kind: 'move', to: 0 }],
    ['Enter', false, 2, { kind: 'choose' }],
    ['Escape', false, 2, { kind: 'clear' }],
    ['a', false, 2, null],
  ])('return the action of the key %s (with Shift: %s) on bar %d', (key, shiftKey, at, expectedAction) => {
    expect(brushKey({ key, shiftKey }, at, 3)).toEqual(expectedAction);
  });
});

describe('summary of the deliveries of a run', () => {
  const event = (state: RunEvent['state'], delivery_count = 0) => ({
    state,
    delivery_count,
  });

  test.each([
    [[event('unmatched'), event('matched', 22)], 'Webhooks matched 1 of its 2 events: 22 deliveries in all.'],
    [[event('matched', 1)], 'Webhooks matched its event: 1 delivery in all.'],
    [[event('matched', 1), event('matched', 2)], 'Webhooks matched each of its events: 3 deliveries in all.'],
    [[event('unmatched')], 'No webhook was notified of this run: none matched its events.'],
    [
      [event('unmatched'), event('waiting')],
      'No webhook has been notified of this run yet: its events are queued.',
    ],
    [[event('not_reported'), event('matched', 1)], 'Webhooks matched its event: 1 delivery in all.'],
    [[event('not_reported')], 'No event of this run has been reported.'],
    [[event('expired')], 'The log no longer contains the events of this run.'],
  ])('describes %j', (events, text) => expect(describeMatches(events)).toBe(text));

  test('the duration of a run is the time from its start to its end', () => {
    const run = { started_at: '2026-01-31T19:28:00Z', finished_at: '2026-01-31T19:31:20Z' };
    expect(formatRunDuration(run)).toBe('3 min 20 s');
    expect(formatRunDuration({ ...run, finished_at: null })).toBeNull();
  });
});
