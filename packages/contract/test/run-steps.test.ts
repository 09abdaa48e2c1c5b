import { describe, expect, test } from '@jest/globals';
import {
  commandStepName,
  limitMessageSteps,
  parseRunSteps,
  RUN_STEP_LIMITS,
  stepsBytes,
  truncateStart,
} from '@runhook/contract';

const STEP = { index: 1, name: 'Invoke dbt with `dbt build`', status: 10 };

describe('steps of a run', () => {
  test.each([
    [1, 'Queued'],
    [3, 'Running'],
    ['running', 'Running'],
    [10, 'Success'],
    ['Success', 'Success'],
    ['20', 'Errored'],
    ['Error', 'Errored'],
    ['errored', 'Errored'],
    [30, 'Canceled'],
    ['Cancelled', 'Canceled'],
  ])('have the status %p as %s', (status, stored) => {
    expect(parseRunSteps([{ ...STEP, status }]).steps).toMatchObject([{ status: stored }]);
  });

  test('have null for what is not reported, and drop unknown fields', () => {
    const step = { ...STEP, status: 'Success', finished_at: null, color: 'red' };
    expect(parseRunSteps([step]).steps).toEqual([
      { ...STEP, status: 'Success', started_at: null, finished_at: null, logs: null, debug_logs: null },
    ]);
  });

  test('have times in microseconds, truncated', () => {
    const times = { started_at: '2026-01-31T23:59:59.123456789Z', finished_at: '2026-02-01T00:00:00+00:00' };
    expect(parseRunSteps([{ ...STEP, ...times }]).steps).toMatchObject([
      { started_at: '2026-01-31T23:59:59.123456Z', finished_at: '2026-02-01T00:00:00.000000Z' },
    ]);
  });

  test('keep ANSI escape sequences, and have U+FFFD in place of characters that are not I-JSON', () => {
    const logs = '\u001b[32mOK\u001b[0m \0 \ud800 \uffff \u{1f600}';
    expect(parseRunSteps([{ ...STEP, logs, debug_logs: '' }]).steps).toMatchObject([
      { logs: '\u001b[32mOK\u001b[0m \ufffd \ufffd \ufffd \u{1f600}', debug_logs: '' },
    ]);
  });

  test.each([
    ['no list', { 0: STEP }, ''],
    ['no index', [{ ...STEP, index: undefined }], '.0.index'],
    ['a negative index', [{ ...STEP, index: -1 }], '.0.index'],
    ['an index with a fraction', [{ ...STEP, index: 1.5 }], '.0.index'],
    ['an index of text', [{ ...STEP, index: '1' }], '.0.index'],
    ['an index twice', [STEP, STEP], '.1'],
    ['no name', [{ ...STEP, name: '' }], '.0.name'],
    ['a long name', [{ ...STEP, name: 'n'.repeat(RUN_STEP_LIMITS.nameCharactersMax + 1) }], '.0.name'],
    ['an unknown status', [{ ...STEP, status: 4 }], '.0.status'],
    ['an unknown word', [{ ...STEP, status: 'constructor' }], '.0.status'],
    ['a local time', [{ ...STEP, started_at: '2026-01-31T23:59:59' }], '.0.started_at'],
    ['logs that are no text', [{ ...STEP, logs: ['Done'] }], '.0.logs'],
    ['too many steps', Array.from({ length: 101 }, (_, index) => ({ ...STEP, index })), ''],
  ])('with %s are invalid', (_, steps, field) => {
    expect(parseRunSteps(steps).problems).toMatchObject([{ field: `run_steps${field}` }]);
  });
});

describe('truncateStart', () => {
  test('returns a text within the limit unchanged', () => {
    expect(truncateStart('äöü', 6)).toBe('äöü');
  });

  test('keeps the end of a longer text after a line that says so, without half a character', () => {
    const text = `start${'€'.repeat(400_000)}end`;
    const truncated = truncateStart(text, RUN_STEP_LIMITS.textBytesMax);
    const [notice, end] = truncated.split('\n');
    expect(notice).toBe('[This log had 1200008 bytes. Only its end is stored.]');
    expect(end).toMatch(/^€+end$/);
    const bytes = Buffer.byteLength(truncated);
    expect(bytes).toBeLessThanOrEqual(RUN_STEP_LIMITS.textBytesMax);
    expect(bytes).toBeGreaterThan(RUN_STEP_LIMITS.textBytesMax - 3);
  });
});

describe('limitMessageSteps', () => {
  test('returns steps that fit, with well-formed texts and without unknown fields', () => {
    const steps = [{ ...STEP, logs: 'x'.repeat(200_000), debug_logs: '\0\ud800', color: 'red\0' }];
    const { color, ...step } = steps[0] as (typeof steps)[number];
    expect(limitMessageSteps(steps)).toEqual([{ ...step, debug_logs: '\ufffd\ufffd' }]);
    expect(color).toBe('red\0');
  });

  test('shortens long texts, also those that JSON escapes, and keeps short ones', () => {
    const steps = [
      { ...STEP, logs: '\u001b'.repeat(300_000), debug_logs: 'short' },
      { ...STEP, index: 2, logs: `${'x'.repeat(900_000)}end` },
    ];
    const fitting = limitMessageSteps(steps) ?? [];
    expect(stepsBytes(fitting)).toBeLessThanOrEqual(RUN_STEP_LIMITS.messageBytesMax);
    expect(fitting).toMatchObject([
      { debug_logs: 'short', logs: expect.stringContaining('had 300000 bytes') },
      { logs: expect.stringMatching(/had 900003 bytes[\s\S]+end$/) },
    ]);
  });

  test('leaves texts out if there is no capacity for them, and returns null for names that are too long', () => {
    const steps = (name: string) =>
      Array.from({ length: 100 }, (_, index) => ({ index, name, status: 3, logs: 'x'.repeat(10_000) }));
    expect(limitMessageSteps(steps('\u0001'.repeat(400)))?.[0]).toEqual({
      index: 0,
      name: '\u0001'.repeat(400),
      status: 3,
    });
    expect(limitMessageSteps(steps('\u0001'.repeat(1_000)))).toBeNull();
  });
});

describe('commandStepName', () => {
  test.each([
    [['dbt', 'build', '--select', 'a b'], 'Invoke dbt with `dbt build --select a b`'],
    [['/opt/venv/bin/dbt', 'run'], 'Invoke dbt with `dbt run`'],
    [['python', 'load.py'], 'python load.py'],
  ])('names %j', (command, name) => {
    expect(commandStepName(command)).toBe(name);
  });

  test('shortens long commands to the limit', () => {
    const name = commandStepName(['dbt', 'x'.repeat(5_000)]);
    expect(name).toMatch(/^Invoke dbt with `dbt x+…`$/);
    expect(parseRunSteps([{ ...STEP, name }]).problems).toBeUndefined();
    expect(parseRunSteps([{ ...STEP, name: commandStepName(['y'.repeat(5_000)]) }]).problems).toBeUndefined();
  });
});
