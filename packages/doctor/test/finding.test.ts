import { expect, test } from '@jest/globals';
import { clockFinding, failed, findingsText, ok, reasonOf } from '../src/finding.ts';

test.each([
  ['ok', 1_500, 'agrees with the clock of this machine'],
  // The duration of a slow response does not count as a difference.
  ['ok', 9_900, 'agrees with the clock of this machine'],
  ['warning', 13_000, 'is 3.0 s ahead of the clock of this machine'],
  ['warning', -30_000, 'is 31.0 s behind the clock of this machine'],
  ['failed', 110_000, 'is 100.0 s ahead of the clock of this machine'],
])('a clock is %s if it shows %d ms when it is 1,000 to 10,000 ms here', (status, serverMs, message) => {
  expect(clockFinding('clock', serverMs, 1_000, 10_000)).toMatchObject({ status, message });
});

test('each finding is a line, its action is another line, and findings are counted by status', () => {
  const text = findingsText([ok('queue', 'answers'), failed('schema', 'is behind', 'Migrate.')]);
  expect(text.split('\n')).toEqual([
    'ok       queue   answers',
    'FAILED   schema  is behind',
    '                 → Migrate.',
    '',
    '1 failed, 0 warnings, 1 ok, 0 skipped',
  ]);
});

test('the reason is the innermost error code, without the message', () => {
  const connectionError = Object.assign(new Error('connect postgres://u:secret@h'), { code: 'ECONNREFUSED' });
  expect(reasonOf(new Error('no connection', { cause: new AggregateError([connectionError]) }))).toBe(
    'ECONNREFUSED',
  );
});
