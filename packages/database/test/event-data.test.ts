import { expect, test } from '@jest/globals';
import { createId, EVENT_TYPES, sampleEvent } from '@runhook/contract';
import {
  eventDataField,
  eventDataOf,
  isStoredEventData,
  openDatabase,
  storedEventData,
} from '@runhook/database';
import { createTestDatabase } from '@runhook/testing';

const sampleOf = (eventType: (typeof EVENT_TYPES)[number]) =>
  sampleEvent(eventType, { accountId: 1, eventId: createId('event'), now: new Date('2026-11-23T10:11:12Z') });

test.each(EVENT_TYPES)('an event of %s is read as it was stored', (eventType) => {
  const event = sampleOf(eventType);
  const stored: unknown = JSON.parse(storedEventData(event));
  expect(isStoredEventData(stored)).toBe(true);
  if (isStoredEventData(stored)) expect(eventDataOf(eventType, stored)).toEqual(event.data);
});

test('one that a former release stored, with the names of its fields, is read too', () => {
  const { eventType, data } = sampleOf('job.run.completed');
  const stored: unknown = JSON.parse(JSON.stringify(data));
  expect(isStoredEventData(stored)).toBe(true);
  if (isStoredEventData(stored)) expect(eventDataOf(eventType, stored)).toEqual(data);
});

test.each([null, 'a text', 3, {}, [], ['12', 'a few'], { name: 'x' }])('%j is no event', (stored) => {
  expect(isStoredEventData(stored)).toBe(false);
});

test('each value stays where rows of this release have it', () => {
  const event = sampleOf('job.run.errored');
  const data = {
    ...{ jobId: '0', jobName: '1', runId: '2', environmentId: '3', environmentName: '4', engineVersion: '5' },
    ...{ projectName: '6', projectId: '7', runStatus: '8', runStatusCode: 9, runStatusMessage: '10' },
    ...{ runReason: '11', runStartedAt: '12', runErroredAt: '13' },
  };
  expect(storedEventData({ ...event, data } as typeof event)).toBe(
    '["0","1","2","3","4","5","6","7","8",9,"10","11","12","13"]',
  );
});

test('SQL finds a field in both forms', async () => {
  const testDatabase = await createTestDatabase();
  const database = openDatabase({ url: testDatabase.url });
  try {
    const event = sampleOf('job.run.started');
    const forms = [storedEventData(event), JSON.stringify(event.data)];
    const { rows } = await database.pool.query<{ found: string }>(
      `SELECT ${eventDataField('e.data', 'runId')} AS found FROM unnest($1::json[]) AS e (data)`,
      [forms],
    );
    expect(rows.map(({ found }) => found)).toEqual([event.data.runId, event.data.runId]);
  } finally {
    await database.close();
    await testDatabase.drop();
  }
});
