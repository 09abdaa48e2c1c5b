import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createId, JOB_RUN_EVENTS, type JobRunEvent, sampleEvent } from '@runhook/contract';
import { storedEventData } from '@runhook/database';
import { createQueueBackend } from '@runhook/queue';
import { eventually } from '@runhook/testing';
import { NO_RECORDING } from '../../src/http/idempotency.ts';
import { createPublishedEvents } from '../../src/runs/published-events.ts';
import { type CallOptions, type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let runner: string;

beforeAll(async () => {
  harness = await startHarness();
});
beforeEach(async () => {
  account = await harness.newAccount({ plan: 'free' });
  runner = await harness.newToken(account, ['job_runner']);
});
afterAll(() => harness.close());

const newEvent = (type: JobRunEvent['eventType'] = 'job.run.errored', fields: object = {}): JobRunEvent => ({
  ...sampleEvent(type, { accountId: account.id, eventId: createId('event'), now: new Date() }),
  ...fields,
});

const publish = (events: unknown, options: CallOptions = {}) =>
  harness.call('POST', `/api/v2/accounts/${account.id}/events/`, {
    token: runner,
    body: { events },
    ...options,
  });

/** Escapes text as many JSON writers do by default: a pair of surrogates takes twelve bytes. */
const inAscii = (text: string) =>
  text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const verdicts = ({ json }: { json: Json }) => json.data.events.map(({ verdict }: Json) => verdict);

/** Returns the stored events of the account, and whether they are undispatched. */
async function stored(): Promise<{ id: string; data: string; open: boolean }[]> {
  const { rows } = await harness.database.pool.query(
    `SELECT e.id, e.data::text AS data, o.event_id IS NOT NULL AS open
     FROM events e LEFT JOIN undispatched_events o ON o.day = e.day AND o.event_id = e.id AND o.account_id = e.account_id
     WHERE e.account_id = $1 ORDER BY e.id`,
    [account.id],
  );
  return rows;
}

describe('POST …/events/', () => {
  test('records events with their runs and hands them to the queue', async () => {
    const started = newEvent('job.run.started');
    const completed = newEvent('job.run.completed');
    const response = await publish([started, completed]);
    expect(response).toMatchObject({ status: 202, json: { status: { code: 202 } } });
    expect(response.json.data).toEqual({
      accepted_count: 2,
      duplicate_count: 0,
      rejected_count: 0,
      events: [started, completed].map(({ eventId }) => ({ event_id: eventId, verdict: 'accepted' })),
    });
    const readRecorded = [started, completed].map((event) => ({
      id: event.eventId,
      data: storedEventData(event),
      open: true,
    }));
    expect(await stored()).toEqual(readRecorded.sort((a, b) => (a.id < b.id ? -1 : 1)));
    const path = `/api/v2/accounts/${account.id}/runs/${completed.data.runId}`;
    const { json } = await harness.call('GET', path, { token: runner });
    expect(json.data).toMatchObject({ status: 10, job_definition_id: Number(completed.data.jobId) });
    await eventually(async () => expect(await harness.relayWaiting()).toBe(0));
  });

  test('hands events of concurrent calls to the queue together', async () => {
    const handedOver: string[][] = [];
    const { pool } = harness.database;
    const published = createPublishedEvents({
      pool,
      reportPool: pool,
      relay: { add: (events) => void handedOver.push(events.map(({ event }) => event.eventId)) },
    });
    const reporting = { accountId: account.id, version: null, recorder: NO_RECORDING };
    const [firstEvent, secondEvent] = [newEvent(), newEvent()];
    const calls = [[firstEvent], [secondEvent], [firstEvent]].map((events) =>
      published.publish(reporting, events, ({ added }) => ({ code: 202, data: [...added] })),
    );
    const responses = await Promise.all(calls);
    expect(responses.map(({ data }) => data)).toEqual([[firstEvent.eventId], [secondEvent.eventId], []]);
    expect(handedOver).toEqual([[firstEvent.eventId, secondEvent.eventId]]);
  });

  test('recognizes a repeated event by its id, within a call and between callers', async () => {
    const [firstEvent, secondEvent] = [newEvent(), newEvent()];
    expect(verdicts(await publish([firstEvent, firstEvent]))).toEqual(['accepted', 'duplicate']);
    expect(verdicts(await publish([secondEvent, { ...firstEvent, timestamp: undefined }]))).toEqual([
      'accepted',
      'duplicate',
    ]);
    const third = newEvent();
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, index) => publish([third, ...(index === 0 ? [firstEvent] : [])])),
    );
    const firstVerdicts = responses.map((response) => verdicts(response)[0]).sort();
    expect(firstVerdicts).toEqual(['accepted', ...Array(7).fill('duplicate')]);
    expect(await stored()).toHaveLength(3);
  });

  test('rejects an event whose id is on record, or in the same call, with other data', async () => {
    const event = newEvent();
    const secondEvent = { ...event, data: { ...event.data, runReason: 'another reason' } };
    expect(verdicts(await publish([event, secondEvent]))).toEqual(['accepted', 'rejected']);
    const { json } = await publish([secondEvent, newEvent()]);
    expect(json.data.events[0]).toEqual({
      event_id: event.eventId,
      verdict: 'rejected',
      errors: [{ field: 'eventId', message: 'names an event that is on record with other data' }],
    });
    expect(verdicts(await publish([event]))).toEqual(['duplicate']);
    const { rows } = await harness.database.pool.query('SELECT data::text FROM events WHERE id = $1', [
      event.eventId,
    ]);
    expect(rows).toEqual([{ data: storedEventData(event) }]);
  });

  test('treats the same id in two accounts as two events and queues both', async () => {
    const ownEvent = newEvent();
    expect(verdicts(await publish([ownEvent]))).toEqual(['accepted']);
    const secondEvent = await harness.newAccount({ plan: 'free' });
    const otherEvent = { ...ownEvent, accountId: secondEvent.id };
    const token = await harness.newToken(secondEvent, ['job_runner']);
    const path = `/api/v2/accounts/${secondEvent.id}/events/`;
    const publishOther = () => harness.call('POST', path, { token, body: { events: [otherEvent] } });
    expect(verdicts(await publishOther())).toEqual(['accepted']);
    expect(verdicts(await publishOther())).toEqual(['duplicate']);
    expect(verdicts(await publish([ownEvent]))).toEqual(['duplicate']);
    const queue = createQueueBackend(harness.settings.queueUrl).createQueue<JobRunEvent>(JOB_RUN_EVENTS);
    await eventually(async () => {
      const queuedEvents = (await queue.getWaiting()).filter(({ data }) => data.eventId === ownEvent.eventId);
      expect(queuedEvents.map(({ data }) => data.accountId).sort()).toEqual(
        [account.id, secondEvent.id].sort(),
      );
    });
    await queue.close();
  });

  test('assigns an id and a time to events without them', async () => {
    const { eventId: _id, timestamp: _time, ...event } = newEvent();
    const { json } = await publish([event, event]);
    const ids = json.data.events.map((firstEvent: Json) => firstEvent.event_id);
    expect(new Set(ids).size).toBe(2);
    expect((await stored()).map(({ id }) => id)).toEqual([...ids].sort());
  });

  test('accepts times of a run in the formats of other languages', async () => {
    const event = newEvent('job.run.completed');
    const data = { ...event.data, runFinishedAt: '2026-01-31T19:31:20.999+00:00' };
    const path = `/api/v2/accounts/${account.id}/events`;
    const response = await fetch(harness.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${runner}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [{ ...event, data }] }),
    });
    expect(response.status).toBe(202);
    expect((await stored())[0]?.data).toMatch(/"runFinishedAt":"2026-01-31T19:31:20Z"}$/);
  });

  test('reports the problems of each invalid event and accepts the others', async () => {
    const foreignEvent = newEvent('job.run.errored', { accountId: account.id + 1 });
    const { data, ...bare } = newEvent();
    const { runId: _runId, ...incomplete } = data;
    const old = newEvent('job.run.errored', { eventId: createId('event', Date.now() - 40 * 86_400_000) });
    const validEvent = newEvent();
    const response = await publish([foreignEvent, { ...bare, data: incomplete }, validEvent, old, 7]);
    expect(response.status).toBe(202);
    expect(response.json.data.events).toEqual([
      {
        event_id: foreignEvent.eventId,
        verdict: 'rejected',
        errors: [{ field: 'accountId', message: `must be ${account.id}, the account of the path` }],
      },
      {
        event_id: bare.eventId,
        verdict: 'rejected',
        errors: [{ field: 'data.runId', message: 'is required' }],
      },
      { event_id: validEvent.eventId, verdict: 'accepted' },
      {
        event_id: old.eventId,
        verdict: 'rejected',
        errors: [{ field: 'eventId', message: 'is older than the 30 days of the log' }],
      },
      {
        event_id: null,
        verdict: 'rejected',
        errors: [{ field: 'event', message: 'must be of type object' }],
      },
    ]);
    expect((await stored()).map(({ id }) => id)).toEqual([validEvent.eventId]);
  });

  test('is a 400 that names the fields if no event is valid or the body is not a list', async () => {
    const foreignEvent = newEvent('job.run.errored', { accountId: account.id + 1 });
    const messageFor = async (events: unknown) => {
      const { status, json } = await publish(events);
      return [status, json.status.developer_message];
    };
    expect(await messageFor([foreignEvent, {}])).toEqual([
      400,
      [
        `events.0.accountId: must be ${account.id}, the account of the path`,
        'events.1.eventType: is required',
        'events.1.accountId: is required',
        'events.1.data: is required',
      ].join('\n'),
    ]);
    expect(await messageFor([])).toEqual([400, 'events: must contain at least 1 items']);
    expect(await messageFor(foreignEvent)).toEqual([400, 'events: must be an array']);
    const many = Array.from({ length: 501 }, () => 1);
    expect(await messageFor(many)).toEqual([400, 'events: must contain less than or equal to 500 items']);
    const [, lines] = await messageFor(many.slice(1));
    expect(lines.split('\n')).toHaveLength(500);
    expect(await stored()).toEqual([]);
  });

  test('accepts 500 events of usual length, and one of maximum length', async () => {
    const many = await publish(Array.from({ length: 500 }, () => newEvent()));
    expect(many.json.data).toMatchObject({ accepted_count: 500 });
    const longest = newEvent();
    const text = '🚀'.repeat(65_536);
    const data = { ...longest.data, runReason: text, runStatusMessage: text };
    const body = JSON.stringify({ events: [{ ...longest, data }] });
    expect((await publish([], { body: inAscii(body) })).status).toBe(202);
    expect((await publish([{ ...longest, data, more: 'x'.repeat(2_000_000) }])).status).toBe(413);
  });

  test('repairs invalid text and queues the event', async () => {
    const event = newEvent();
    const data = { ...event.data, jobName: 'a\0b', runReason: 'cut \ud83d', runStatusMessage: '\ufffe' };
    expect(verdicts(await publish([{ ...event, data }]))).toEqual(['accepted']);
    const repaired = { ...data, jobName: 'a\ufffdb', runReason: 'cut \ufffd', runStatusMessage: '\ufffd' };
    const [row] = await stored();
    expect(row?.data).toBe(storedEventData({ ...event, data: repaired } as JobRunEvent));
    await eventually(async () => expect(await harness.relayWaiting()).toBe(0));
  });

  test('replays its response for a repeated Idempotency-Key', async () => {
    const { eventId: _id, ...event } = newEvent();
    const headers = { 'idempotency-key': 'once' };
    const firstResponse = await publish([event], { headers });
    const repeated = await publish([event], { headers });
    expect(repeated.headers.get('idempotent-replay')).toBe('true');
    expect(repeated.json).toEqual(firstResponse.json);
    expect(await stored()).toHaveLength(1);
  });

  test('requires the permission to report runs', async () => {
    for (const permissionSet of ['developer', 'member', 'read_only'] as const) {
      const token = await harness.newToken(account, [permissionSet]);
      expect((await publish([newEvent()], { token })).status).toBe(403);
    }
    const secondEvent = await harness.newAccount();
    expect((await publish([newEvent()], { token: secondEvent.token })).status).toBe(403);
    const { rows } = await harness.database.pool.query(
      'SELECT id FROM service_tokens WHERE account_id = $1',
      [account.id],
    );
    await harness.database.pool.query('UPDATE service_tokens SET revoked_at = now() WHERE id = ANY ($1)', [
      rows.map(({ id }) => id),
    ]);
    expect((await publish([newEvent()])).status).toBe(401);
    expect(await stored()).toEqual([]);
  });
});
