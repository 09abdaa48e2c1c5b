import { expect, test } from '@jest/globals';
import { canStart, describeCount, toSelection } from '../src/webhook/recover-choices.ts';
import {
  describeProgress,
  findWindowProblem,
  formatOutcome,
  initialWindow,
  toTimeWindow,
} from '../src/webhook/recover-wording.ts';
import {
  describeState,
  describeVerification,
  failureAdvice,
  formatDeliveryStatus,
  formatLastResponse,
  formatNextAttempt,
  listPhases,
} from '../src/wording/deliveries.ts';

const UNSUCCESSFUL_STATUS = 'unsuccessful_status';

test.each([
  [null, '204', null, true, 'Your endpoint returned 204 No content'],
  [
    'The endpoint responded with 500.',
    '500',
    UNSUCCESSFUL_STATUS,
    false,
    'Your endpoint returned 500 Internal server error',
  ],
  ['Timed out after 10 s.', '504', 'timeout', false, 'Timed out after 10 s'],
  ['Connection refused.', '502', 'connection_refused', false, 'Connection refused'],
  [
    'The endpoint responded with 502.',
    '502',
    UNSUCCESSFUL_STATUS,
    false,
    'Your endpoint returned 502 Bad gateway',
  ],
  [
    'The endpoint responded with 504.',
    '504',
    UNSUCCESSFUL_STATUS,
    false,
    'Your endpoint returned 504 Gateway timeout',
  ],
])('the result of an endpoint test with error %s is described', (error, status, code, isGood, title) => {
  const text = describeVerification({
    verification_error: error,
    verification_status_code: status,
    verification_error_code: code,
  });
  expect(text).toMatchObject({ isGood, title });
  expect(text.advice === null).toBe(isGood);
});

test('a failed attempt has advice, which depends on its error code; a successful one has none', () => {
  const allCodes = ['timeout', 'no_address', 'connection_refused', 'tls_untrusted', UNSUCCESSFUL_STATUS].map(
    (code) => failureAdvice('502', code),
  );
  expect(new Set(allCodes).size).toBe(allCodes.length);
  for (const status of ['301', '404', '418', '500', '999'])
    expect(failureAdvice(status, 'unsuccessful_status')).toMatch(/\.$/);
  expect(failureAdvice('200', null)).toBeNull();
  // An attempt with an error code is a failure, whatever its status.
  expect(failureAdvice('200', 'connection_reset')).not.toBeNull();
});

test('the countdown to the next attempt does not become negative', () => {
  const at = '1000000000000';
  const text = (secondsBefore: number) => formatNextAttempt(at, 1, 1_000_000_000 - secondsBefore * 1_000);
  expect(text(24)).toBe('Attempt 2 in 24 s');
  expect(text(185)).toBe('Attempt 2 in 3 min 5 s');
  expect(text(3_720)).toBe('Attempt 2 in 1 h 2 min');
  expect(text(0)).toBe('Attempt 2 due now');
  expect(text(-5)).toBe('Attempt 2 due now');
});

test('a delivery shows its state and the reason', () => {
  const sentence = (
    status: 'pending' | 'delivered' | 'failed' | 'cancelled',
    attempt_count: number,
    reason: string | null = null,
    next_attempt_at: string | null = '1795169000000000',
  ) => describeState({ status, attempt_count, reason, next_attempt_at });
  expect(sentence('delivered', 1)).toBe('Delivered on the first attempt.');
  expect(sentence('delivered', 3)).toBe('Delivered after 3 attempts.');
  expect(sentence('failed', 6, 'All 6 attempts failed. Last: Connection refused.')).toContain(
    'Connection refused',
  );
  expect(sentence('cancelled', 0, 'The subscription is inactive.')).toContain('inactive');
  expect(sentence('pending', 0)).toBe('Not sent yet.');
  expect(sentence('pending', 2, null, null)).toBe(
    '2 attempts failed so far. Waiting for earlier deliveries of this webhook, or for the pause that its endpoint requested.',
  );
  expect(formatDeliveryStatus({ status: 'pending', attempt_count: 0 })).toBe('Pending');
  expect(formatDeliveryStatus({ status: 'pending', attempt_count: 2 })).toBe('Retrying');
  expect(formatLastResponse({ attempt_count: 0, http_status_code: '0', error_code: null })).toBe(
    'not sent yet',
  );
  expect(
    formatLastResponse({ attempt_count: 1, http_status_code: '502', error_code: 'unsuccessful_status' }),
  ).toBe('502 Bad gateway');
});

test('a delivery shows the wait that its webhook asks for', () => {
  const pending = { status: 'pending', attempt_count: 0, reason: null, next_attempt_at: null } as const;
  const order = { kind: 'order', event_type: 'job.run.started', delivery_id: 'wdl_1' } as const;
  expect(describeState({ ...pending, waiting_for: order })).toBe(
    'Not sent yet. It is waiting for job.run.started.',
  );
  const limited = { ...pending, waiting_for: { kind: 'rate_limit' as const } };
  expect(describeState(limited)).toBe('Not sent yet. It is waiting for its rate limit.');
  expect(formatLastResponse({ ...limited, http_status_code: '0', error_code: null })).toBe(
    'waiting for its rate limit',
  );
});

test('a recovery shows what it would send before it starts', () => {
  const counted = (total_count: number, more: object = {}) => ({
    total_count,
    count_limited: false,
    since: null,
    until: null,
    counts: { unsent: total_count, failed: 0, cancelled: 0, delivered: 9 },
    ...more,
  });
  expect(describeCount(undefined, 'failed', false, null)).toBe('Counting…');
  expect(describeCount(counted(0), 'failed', false, null)).toContain('nothing to send');
  expect(describeCount(counted(1), 'cancelled', false, null)).toBe('1 cancelled delivery will be sent.');
  expect(describeCount(counted(100_000, { count_limited: true }), 'unsent', false, null)).toMatch(
    /^At least 100.000 unsent events will be sent/,
  );
  expect(describeCount(counted(0, { count_limited: true }), 'unsent', false, null)).toMatch(
    /^No unsent events so far/,
  );
  const counts = { unsent: 120, failed: 6, cancelled: 0, delivered: 0 };
  expect(describeCount(counted(126, { counts }), 'all', false, null)).toBe(
    '126 events will be sent: 120 never sent, 6 failed.',
  );
  expect(
    describeCount(
      counted(120, { counts: { ...counts, unsent: 20, failed: 0, delivered: 100 } }),
      'all',
      true,
      null,
    ),
  ).toBe('120 events will be sent: 20 never sent, 100 already delivered.');
  expect(describeCount(counted(2, { since: '1000000', until: '60000000' }), 'all', false, null)).toMatch(
    /^2 events of .+ to .+ will be sent/,
  );
  expect(describeCount(counted(3), 'failed', false, 'No answer.')).toContain('No answer.');
});

test('a recovery can be started although the count failed or ended early', () => {
  expect(canStart(undefined, false)).toBe(false);
  expect(canStart(undefined, true)).toBe(true);
  expect(canStart({ total_count: 0, count_limited: false }, false)).toBe(false);
  expect(canStart({ total_count: 0, count_limited: true }, false)).toBe(true);
  expect(canStart({ total_count: 1, count_limited: false }, false)).toBe(true);
});

test('a recovery is requested by status or by what it includes', () => {
  expect(toSelection('cancelled', true)).toEqual({ status: 'cancelled' });
  expect(toSelection('failed', true)).toEqual({ include: 'failed' });
  expect(toSelection('all', false)).toEqual({ include: 'all' });
  expect(toSelection('all', true)).toEqual({ include: 'all', again: true });
});

test('a recovery covers the time in which the webhook was off, in whole minutes, otherwise the last hour', () => {
  const openedMs = Date.parse('2026-01-31T15:45:20');
  const micros = (local: string) => String(Date.parse(local) * 1_000);
  expect(initialWindow(undefined, openedMs)).toEqual({ from: '2026-01-31T14:45', to: '' });
  expect(initialWindow({ since: null, until: null }, openedMs).from).toBe('2026-01-31T14:45');
  expect(
    initialWindow({ since: micros('2026-01-31T14:02:59'), until: micros('2026-01-31T15:29:30') }, openedMs),
  ).toEqual({ from: '2026-01-31T14:02', to: '2026-01-31T15:30' });
  expect(
    initialWindow({ since: micros('2026-01-31T14:02:59'), until: micros('2026-01-31T15:45:19') }, openedMs)
      .to,
  ).toBe('');
});

test('the range of a recovery ends at the opening of the dialog by default', () => {
  const window = toTimeWindow({ from: '2026-01-31T10:00', to: '' }, 5_000);
  expect(window.until).toBe('5000000');
  expect(findWindowProblem({ from: '', to: '' }, toTimeWindow({ from: '', to: '' }, 5_000))).toBe(
    'Enter a start time.',
  );
  const backwards = { from: '2026-01-31T10:00', to: '2026-01-30T10:00' };
  expect(findWindowProblem(backwards, toTimeWindow(backwards, 0))).toContain('later');
});

test('a recovery shows the outcome of its deliveries', () => {
  const none = { pending: 0, delivered: 0, failed: 0, cancelled: 0 };
  expect(formatOutcome(none)).toBe('');
  expect(formatOutcome({ ...none, delivered: 243, failed: 7, pending: 3 })).toBe(
    '243 delivered, 7 failed again, 3 pending.',
  );
});

test('a recovery shows its progress', () => {
  const text = (status: 'running' | 'done' | 'cancelled', total_count: number, recovered_count: number) =>
    describeProgress({ status, total_count, recovered_count, reason: 'The subscription is inactive.' });
  expect(text('running', 10, 4)).toContain('4 of 10');
  expect(text('done', 10, 8)).toContain('other 2');
  expect(text('done', 0, 0)).toContain('nothing');
  expect(text('cancelled', 10, 4)).toContain('inactive');
});

test('the timings contain the phases that took place, and the total', () => {
  const timings = { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: 0, total_ms: 3 };
  expect(listPhases(timings)).toEqual([
    { name: 'Waiting for response', ms: 0 },
    { name: 'Total', ms: 3 },
  ]);
});
