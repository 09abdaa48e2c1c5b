import { describe, expect, test } from '@jest/globals';
import {
  createId,
  createSampleEvent,
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type JobRunEvent,
  parseEvent,
  RUN_STATUS_CODES,
  RUN_TIMES,
  reportedStatus,
} from '@runhook/contract';
import { isPlainEvent } from '../src/event-schema.ts';
import { RUN_FIELDS } from '../src/event-types.ts';
import { EVENTS } from './fixtures.ts';

const nowMs = Date.UTC(2026, 1, 1);
const defaults = { eventId: () => createId('event', nowMs), timestampMs: nowMs, nowMs, retentionDays: 30 };
const identity = {
  eventId: createId('event', nowMs),
  accountId: 1,
  timestamp: '2026-02-01T00:00:00.000000000Z',
};
const {
  runStatus: _status,
  runStatusCode: _code,
  runStatusMessage: _message,
  ...run
} = EVENTS['job.run.started'].data;
const sampleOf = (eventType: (typeof EVENT_TYPES)[number]) =>
  createSampleEvent(eventType, identity, run, () => '2026-01-31T19:31:20Z');

describe.each(EVENT_TYPES)('the event type %s', (eventType) => {
  const { statuses, time, sample } = EVENT_TYPE_TABLE[eventType];

  test('has a sample that isPlainEvent() accepts and parseEvent() returns unchanged, its timestamp as the last key', () => {
    const event = sampleOf(eventType);
    expect(isPlainEvent(event)).toBe(true);
    expect(parseEvent(event, defaults).event).toEqual(event);
    expect(Object.keys(parseEvent(event, defaults).event?.data ?? {})).toEqual([
      ...Object.keys(RUN_FIELDS),
      ...(time === null ? [] : [time]),
    ]);
  });

  test('has a sample whose status is one of its statuses', () => {
    expect(statuses).toContain(sample.status);
    expect(reportedStatus(sampleOf(eventType))).toBe(sample.status);
    expect(sampleOf(eventType).data.runStatusCode).toBe(RUN_STATUS_CODES[sample.status]);
  });

  test('requires its own timestamp in data, and not that of another event type', () => {
    const event = sampleOf(eventType);
    for (const name of Object.keys(RUN_TIMES)) {
      const { [name]: _removed, ...data } = event.data as Record<string, unknown>;
      const problems = parseEvent({ ...event, data }, defaults).problems ?? [];
      expect(problems.map(({ field }) => field)).toEqual(name === time ? [`data.${name}`] : []);
    }
  });
});

test('an event whose runStatus is not one of its type describes a run by its code, or in the first status of the type', () => {
  const reported = (event: JobRunEvent, runStatus: string, runStatusCode = event.data.runStatusCode) =>
    reportedStatus({ ...event, data: { ...event.data, runStatus, runStatusCode } } as JobRunEvent);
  expect(reported(EVENTS['job.run.completed'], 'Errored')).toBe('Errored');
  expect(reported(EVENTS['job.run.completed'], 'Fine', 0)).toBe('Success');
  expect(reported(EVENTS['job.run.completed'], 'Error', 20)).toBe('Errored');
  expect(reported(EVENTS['job.run.errored'], 'Success')).toBe('Errored');
  expect(reported(EVENTS['job.run.started'], 'Canceled')).toBe('Running');
});
