import { expect, test } from '@jest/globals';
import { createId, EVENT_TYPES, sampleEvent } from '@runhook/contract';
import {
  eventDataField,
  eventDataOf,
  eventTimestampOf,
  isStoredEventData,
  openDatabase,
  storedEventData,
  storedTimestamp,
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

const inPlaces = {
  ...{ jobId: '0', jobName: '1', runId: '2', environmentId: '3', environmentName: '4', engineVersion: '5' },
  ...{ projectName: '6', projectId: '7', runStatus: '8', runStatusCode: 9, runStatusMessage: '10' },
  ...{ runReason: '11', runStartedAt: '12', runErroredAt: '13' },
};

test.each([
  ['texts', inPlaces, '[0,"1",2,3,"4","5","6",7,"8",9,"10","11","12","13"]'],
  [
    'a status with its code, and times',
    {
      ...inPlaces,
      ...{ runStatus: 'Errored', runStatusCode: 20 },
      ...{ runStartedAt: '2026-11-23T10:11:12Z', runErroredAt: '1969-12-31T23:59:59Z' },
    },
    '[0,"1",2,3,"4","5","6",7,20,0,"10","11",1795428672,-1]',
  ],
  [
    'what a number would not tell as it is',
    {
      ...inPlaces,
      ...{ jobId: '007', runId: '9007199254740993', environmentId: '1e3', projectId: '' },
      ...{
        runStatus: 'Errored',
        runStatusCode: 10,
        runStartedAt: '2026-11-23T10:11:12.000Z',
        runErroredAt: '',
      },
    },
    '["007","1","9007199254740993","1e3","4","5","6","","Errored",10,"10","11","2026-11-23T10:11:12.000Z",""]',
  ],
  [
    'the name of what every object has',
    { ...inPlaces, runStatus: 'toString', runStatusCode: 0 },
    '[0,"1",2,3,"4","5","6",7,"toString",0,"10","11","12","13"]',
  ],
])('each value stays where rows of this release have it: %s', (_, data, text) => {
  const event = { eventType: 'job.run.errored', data } as unknown as ReturnType<typeof sampleOf>;
  expect(storedEventData(event)).toBe(text);
  expect(eventDataOf(event.eventType, JSON.parse(text))).toEqual(data);
});

test('one in its places whose ids and times are texts is read, too', () => {
  expect(eventDataOf('job.run.errored', Object.values(inPlaces))).toEqual(inPlaces);
});

test.each([
  ['2026-11-23T10:11:12.000000000Z', '1795428672'],
  ['2026-11-23T10:11:12.345000000Z', '1795428672.345'],
  ['2026-11-23T10:11:12.000000001Z', '1795428672.000000001'],
  ['1969-12-31T23:59:59.000000000Z', '1969-12-31T23:59:59.000000000Z'],
  ['2026-11-23T10:11:12Z', '2026-11-23T10:11:12Z'],
])('the timestamp %s is stored as %s, and read as it was', (timestamp, stored) => {
  expect(storedTimestamp(timestamp)).toBe(stored);
  expect(eventTimestampOf(stored)).toBe(timestamp);
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
