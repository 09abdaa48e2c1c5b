import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import {
  codePointLength,
  createId,
  formatCount,
  hasInvalidText,
  isLongerThan,
  parseEvent,
  renderPayload,
  truncateText,
  truncateWithEllipsis,
  wellFormedText,
} from '@runhook/contract';
import { EVENTS } from './fixtures.ts';

interface Vector {
  name: string;
  utf16: string;
  valid: boolean;
  codePoints: number;
  repaired: string;
}

const file = new URL('../golden/texts.json', import.meta.url);
const { texts } = JSON.parse(readFileSync(file, 'utf8')) as { texts: Vector[] };
const textOf = ({ utf16 }: Vector) => Buffer.from(utf16, 'hex').swap16().toString('utf16le');

test.each(texts)(
  'a text is validated, counted and repaired as the test vectors for implementations in all languages require: $name',
  (vector) => {
    const text = textOf(vector);
    expect({
      valid: !hasInvalidText(text),
      codePoints: codePointLength(text),
      repaired: wellFormedText(text),
    }).toEqual({ valid: vector.valid, codePoints: vector.codePoints, repaired: vector.repaired });
  },
);

test('a limit counts code points, not UTF-16 units', () => {
  const rockets = (count: number) => '🚀'.repeat(count);
  expect([3, 4, 5, 9].map((count) => isLongerThan(rockets(count), 4))).toEqual([false, false, true, true]);
  expect(isLongerThan('\ud83d'.repeat(5), 4)).toBe(true);
});

test('a text is cut between code points', () => {
  expect([0, 1, 2, 3, 9].map((count) => truncateText('a🚀b', count))).toEqual([
    '',
    'a',
    'a🚀',
    'a🚀b',
    'a🚀b',
  ]);
  expect([2, 3].map((count) => truncateWithEllipsis('a🚀b', count))).toEqual(['a🚀…', 'a🚀b']);
});

describe.each(Object.values(EVENTS))('an event of the type $eventType', (event) => {
  const defaults = { eventId: () => createId('event'), timestampMs: 0, nowMs: Date.now(), retentionDays: 30 };
  const INVALID_TEXT = 'cut \ud83d \0 \ufffe';
  const REPAIRED = 'cut \ufffd \ufffd \ufffd';
  const FREE_TEXT = [
    'jobName',
    'environmentName',
    'engineVersion',
    'projectName',
    'runStatus',
    'runStatusMessage',
    'runReason',
  ];
  const insertInvalid = Object.fromEntries(FREE_TEXT.map((textField) => [textField, INVALID_TEXT]));
  const repaired = Object.fromEntries(FREE_TEXT.map((field) => [field, REPAIRED]));

  test.each([
    ['by isPlainEvent()', { ...event, eventId: createId('event') }],
    ['by the Joi schema', { ...event, eventId: undefined }],
  ])('is parsed with its texts repaired if it is accepted %s', (_way, published) => {
    const parsed = parseEvent({ ...published, data: { ...event.data, ...insertInvalid } }, defaults);
    expect(parsed.event?.data).toEqual({ ...event.data, ...repaired });
  });

  test('is rendered as I-JSON even from a row of an older release', () => {
    const stored = { ...event, data: { ...event.data, ...insertInvalid } } as typeof event;
    const body = renderPayload(stored, { id: 'wsu_1', name: INVALID_TEXT });
    expect(hasInvalidText(body)).toBe(false);
    expect(JSON.parse(body)).toMatchObject({ webhookName: REPAIRED, data: repaired });
  });
});

test.each([
  [0, '0'],
  [999, '999'],
  [1_000, '1,000'],
  [1_234_567, '1,234,567'],
])('a count of %d has a comma between thousands', (count, text) => {
  expect(formatCount(count)).toBe(text);
});
