import { expect, test } from '@jest/globals';
import { createId } from '@runhook/contract';
import { checkBySchema, isPlainEvent } from '../src/event-schema.ts';
import { EVENTS } from './fixtures.ts';

const ODD_VALUES = [
  undefined,
  null,
  true,
  '',
  ' ',
  '0',
  '1',
  '01',
  '1.0',
  '-1',
  '1e3',
  ' 1',
  '9007199254740993',
  'None',
  'job.run.completed',
  0,
  1,
  -1,
  1.5,
  2 ** 53,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1n,
  [],
  ['1'],
  {},
  { toString: () => '1' },
  new Date(0),
  'x'.repeat(1_024),
  'x'.repeat(1_025),
  'x'.repeat(65_536),
  'x'.repeat(65_537),
  '\0',
  '\ud800',
  '\u00e9',
  createId('event'),
  createId('subscription'),
  `wev_${'z'.repeat(27)}`,
  `wev_${'0'.repeat(27)}`,
  '2026-01-31T19:31:20Z',
  '2026-02-29T00:00:00Z',
  '2024-02-29T23:59:59Z',
  '2026-01-31T24:00:00Z',
  '2026-01-31T23:59:60Z',
  '2026-00-10T00:00:00Z',
  '2026-13-10T00:00:00Z',
  '2026-01-00T00:00:00Z',
  '0000-02-29T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00Z',
  '1900-02-29T00:00:00Z',
  '2026-01-31T19:31:20.123456789Z',
  '2026-01-31T19:31:20.1234567890Z',
  '2026-01-31T19:31:20+00:00',
  '2026-01-31 19:31:20Z',
];
const events = Object.values(EVENTS).map((event) => ({ ...event, eventId: createId('event') }));

test('isPlainEvent() accepts typical events', () => {
  for (const event of events) expect(isPlainEvent(event)).toBe(true);
});

test('the Joi schema accepts every event that isPlainEvent() accepts, for each odd value in each field', () => {
  let taken = 0;
  for (const event of events) {
    for (const field of [...Object.keys(event), 'extra']) {
      for (const value of ODD_VALUES) taken += checkAgainstSchema({ ...event, [field]: value });
    }
    for (const field of [...Object.keys(event.data), 'runFinishedAt', 'runErroredAt', 'extra']) {
      for (const value of ODD_VALUES)
        taken += checkAgainstSchema({ ...event, data: { ...event.data, [field]: value } });
    }
  }
  for (const value of ODD_VALUES) taken += checkAgainstSchema(value);
  expect(taken).toBeGreaterThan(500);
});

/** Checks that the schema accepts an event accepted by isPlainEvent(), unchanged except for unknown fields. */
function checkAgainstSchema(published: unknown): number {
  if (!isPlainEvent(published)) return 0;
  const { value, problems } = checkBySchema(published);
  expect({ published, problems }).toEqual({ published, problems: undefined });
  expect(published).toMatchObject(value as object);
  return 1;
}
