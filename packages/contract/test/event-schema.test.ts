import { describe, expect, test } from '@jest/globals';
import { createId, idTimeMs, parseEvent } from '@runhook/contract';
import { EVENTS } from './fixtures.ts';

const nowMs = Date.UTC(2026, 1, 1);
const madeUpId = createId('event', nowMs);
const defaults = { eventId: () => madeUpId, timestampMs: nowMs, nowMs, retentionDays: 30 };
const valid = EVENTS['job.run.completed'];
const eventId = createId('event', nowMs);

test('parseEvent() returns the published event without unknown fields', () => {
  const published = { ...valid, eventId, extra: 1, data: { extra: 2, ...valid.data } };
  expect(parseEvent(published, defaults).event).toEqual({ ...valid, eventId });
});

test('parseEvent() adds a missing eventId and timestamp', () => {
  const { eventId: _id, timestamp: _time, ...published } = valid;
  const { event } = parseEvent(published, defaults);
  expect(event?.eventId).toBe(madeUpId);
  expect(event?.timestamp).toBe('2026-02-01T00:00:00.000000000Z');
});

test.each([
  ['2026-01-31T19:31:20Z', '2026-01-31T19:31:20.000000000Z'],
  ['2026-01-31T19:31:20.1Z', '2026-01-31T19:31:20.100000000Z'],
  ['2026-01-31T19:31:20.123456789Z', '2026-01-31T19:31:20.123456789Z'],
  ['2026-01-31T19:31:20.5+00:00', '2026-01-31T19:31:20.500000000Z'],
])('the published timestamp %s is parsed to %s', (timestamp, sent) => {
  expect(parseEvent({ ...valid, eventId, timestamp }, defaults).event?.timestamp).toBe(sent);
});

const problemFields = (published: unknown) =>
  parseEvent(published, defaults).problems?.map(({ field, message }) => {
    expect(message).toContain(field);
    return field;
  });

describe('parseEvent()', () => {
  test.each([
    ['a string', 'text', ['event']],
    ['null', null, ['event']],
    ['an unknown event type', { ...valid, eventId, eventType: 'job.run.exploded' }, ['eventType']],
    ['an account id in a string', { ...valid, eventId, accountId: '1' }, ['accountId']],
    ['an account id of 0', { ...valid, eventId, accountId: 0 }, ['accountId']],
    ['an id that is no KSUID', { ...valid, eventId: 'wev_1' }, ['eventId']],
    [
      'an id older than the retention',
      { ...valid, eventId: createId('event', nowMs - 31 * 86_400_000) },
      ['eventId'],
    ],
    [
      'an id more than a day ahead',
      { ...valid, eventId: createId('event', nowMs + 90_000_000) },
      ['eventId'],
    ],
    ['a local timestamp', { ...valid, eventId, timestamp: '2026-01-31T19:31:20' }, ['timestamp']],
    [
      'ten fractional digits',
      { ...valid, eventId, timestamp: '2026-01-31T19:31:20.1234567890Z' },
      ['timestamp'],
    ],
    ['30 February', { ...valid, eventId, timestamp: '2026-02-30T19:31:20Z' }, ['timestamp']],
    ['the year 0', { ...valid, eventId, timestamp: '0000-01-31T19:31:20Z' }, ['timestamp']],
    ['an event without data', { ...valid, eventId, data: undefined }, ['data']],
    [
      'data with three wrong fields',
      {
        ...valid,
        eventId,
        data: { ...valid.data, jobId: 7, runStatusCode: '10', runStartedAt: '2026-01-31T19:28:07.1Z' },
      },
      ['data.jobId', 'data.runStatusCode', 'data.runStartedAt'],
    ],
  ])('rejects %s and names each wrong field', (_case, published, fields) => {
    expect(problemFields(published)).toEqual(fields);
  });

  test('rejects a completed event without runFinishedAt and an errored event without runErroredAt', () => {
    const { data } = EVENTS['job.run.started'];
    expect(problemFields({ ...valid, eventId, data })).toEqual(['data.runFinishedAt']);
    expect(problemFields({ ...valid, eventId, eventType: 'job.run.errored', data })).toEqual([
      'data.runErroredAt',
    ]);
  });
});

test('every field of data is required', () => {
  const { data, ...rest } = { ...valid, eventId };
  for (const name of Object.keys(data)) {
    const without = Object.fromEntries(Object.entries(data).filter(([key]) => key !== name));
    expect(problemFields({ ...rest, data: without })).toEqual([`data.${name}`]);
  }
});

test('an event id contains its creation time', () => {
  expect(idTimeMs('event', eventId)).toBe(nowMs);
});
