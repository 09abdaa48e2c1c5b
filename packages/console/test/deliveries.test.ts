import { expect, test } from '@jest/globals';
import {
  matchWords,
  outcomeWords,
  progressWords,
  recoverWindow,
  windowRefusal,
} from '../src/webhook/recover-words.ts';
import {
  answerAdvice,
  deliveryWords,
  lastAnswerWords,
  nextAttemptWords,
  phasesOf,
  stateSentence,
  verificationWords,
} from '../src/words/deliveries.ts';

const ANSWERED = 'unsuccessful_status';

test.each([
  [null, '204', null, true, 'Your endpoint returned 204 No content'],
  ['The endpoint answered 500.', '500', ANSWERED, false, 'Your endpoint returned 500 Internal server error'],
  ['Timed out after 10 s.', '504', 'timeout', false, 'Timed out after 10 s'],
  ['Connection refused.', '502', 'connection_refused', false, 'Connection refused'],
  ['The endpoint answered 502.', '502', ANSWERED, false, 'Your endpoint returned 502 Bad gateway'],
  ['The endpoint answered 504.', '504', ANSWERED, false, 'Your endpoint returned 504 Gateway timeout'],
])('a test that ended with %s is described with advice', (error, status, code, isGood, title) => {
  const words = verificationWords({
    verification_error: error,
    verification_status_code: status,
    verification_error_code: code,
  });
  expect(words).toMatchObject({ isGood, title });
  expect(words.advice === null).toBe(isGood);
});

test('every error of an attempt has advice', () => {
  const codes = ['timeout', 'address_forbidden', 'port_forbidden', 'dns_failed', 'no_address'];
  const seen = [...codes, 'connection_refused', 'tls_untrusted', ANSWERED].map((code) =>
    answerAdvice('502', code),
  );
  expect(new Set(seen).size).toBe(seen.length);
  for (const status of ['301', '404', '418', '500', '999'])
    expect(answerAdvice(status, 'unsuccessful_status')).toMatch(/\.$/);
  expect(answerAdvice('200', null)).toBeNull();
  // A 2xx whose connection was closed before the end of the body is a failure.
  expect(answerAdvice('200', 'connection_reset')).not.toBeNull();
});

test('the countdown to the next attempt does not become negative', () => {
  const at = '1000000000000';
  const words = (secondsBefore: number) => nextAttemptWords(at, 1, 1_000_000_000 - secondsBefore * 1_000);
  expect(words(24)).toBe('Attempt 2 in 24 s');
  expect(words(185)).toBe('Attempt 2 in 3 min 5 s');
  expect(words(3_720)).toBe('Attempt 2 in 1 h 2 min');
  expect(words(0)).toBe('Attempt 2 due now');
  expect(words(-5)).toBe('Attempt 2 due now');
});

test('a delivery shows its state and the reason', () => {
  const sentence = (
    status: 'pending' | 'delivered' | 'failed' | 'cancelled',
    attempt_count: number,
    reason: string | null = null,
    next_attempt_at: string | null = '1795169000000000',
  ) => stateSentence({ status, attempt_count, reason, next_attempt_at });
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
  expect(deliveryWords({ status: 'pending', attempt_count: 0 })).toBe('Pending');
  expect(deliveryWords({ status: 'pending', attempt_count: 2 })).toBe('Retrying');
  expect(lastAnswerWords({ attempt_count: 0, http_status_code: '0', error_code: null })).toBe('not sent yet');
  expect(
    lastAnswerWords({ attempt_count: 1, http_status_code: '502', error_code: 'unsuccessful_status' }),
  ).toBe('502 Bad gateway');
});

test('a recovery shows the number of deliveries before it starts', () => {
  expect(matchWords(undefined, 'failed', null)).toBe('Counting…');
  expect(matchWords(0, 'failed', null)).toContain('nothing to resend');
  expect(matchWords(1, 'cancelled', null)).toBe('1 cancelled delivery will be resent.');
  expect(matchWords(1_000_000, 'failed', null)).toMatch(/^At least 1.000.000 failed deliveries/);
  expect(matchWords(3, 'failed', 'No answer.')).toContain('No answer.');
});

test('the range of a recovery ends at the opening of the dialog by default', () => {
  const window = recoverWindow({ from: '2026-01-31T10:00', to: '' }, 5_000);
  expect(window.until).toBe('5000000');
  expect(windowRefusal({ from: '', to: '' }, recoverWindow({ from: '', to: '' }, 5_000))).toBe(
    'Enter a start time.',
  );
  const backwards = { from: '2026-01-31T10:00', to: '2026-01-30T10:00' };
  expect(windowRefusal(backwards, recoverWindow(backwards, 0))).toContain('later');
});

test('a recovery shows the outcome of its deliveries', () => {
  const none = { pending: 0, delivered: 0, failed: 0, cancelled: 0 };
  expect(outcomeWords(none)).toBe('');
  expect(outcomeWords({ ...none, delivered: 243, failed: 7, pending: 3 })).toBe(
    '243 delivered, 7 failed again, 3 pending.',
  );
});

test('a recovery shows its progress', () => {
  const words = (status: 'running' | 'done' | 'cancelled', total_count: number, recovered_count: number) =>
    progressWords({ status, total_count, recovered_count, reason: 'The subscription is inactive.' });
  expect(words('running', 10, 4)).toContain('4 of 10');
  expect(words('done', 10, 8)).toContain('other 2');
  expect(words('done', 0, 0)).toContain('nothing');
  expect(words('cancelled', 10, 4)).toContain('inactive');
});

test('the timings contain the phases that took place, and the total', () => {
  const kept = { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: 0, total_ms: 3 };
  expect(phasesOf(kept)).toEqual([
    { name: 'Waiting for response', ms: 0 },
    { name: 'Total', ms: 3 },
  ]);
});
