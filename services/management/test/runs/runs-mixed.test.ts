import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createId, type EventType, type JobRunEvent, runStatusOfCode, sampleEvent } from '@runhook/contract';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let jobId: number;
let runId = 880_000;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
  jobId = await harness.newJob(account);
});
afterAll(() => harness.close());

const runsPath = (suffix: string) => `/api/v2/accounts/${account.id}/runs/${suffix}`;
const post = async (path: string, body?: object) =>
  await harness.call('POST', path, { token: account.token, ...(body && { body }) });

/** Times of a run: `finish` is reported by calls, the others only by published events. */
const TIMES = {
  started: '2026-11-20T10:00:00Z',
  errored: '2026-11-20T10:05:00Z',
  completed: '2026-11-20T10:06:00Z',
  finish: '2026-11-20T10:07:00Z',
};

function publishedEvent(eventType: EventType, isErrored: boolean): JobRunEvent {
  const identity = { accountId: account.id, eventId: createId('event'), now: new Date() };
  const event = sampleEvent(eventType, identity);
  const { data } = event;
  Object.assign(data, { jobId: String(jobId), runId: String(runId), runStartedAt: TIMES.started });
  if ('runFinishedAt' in data) data.runFinishedAt = TIMES.completed;
  if ('runErroredAt' in data) data.runErroredAt = TIMES.errored;
  if (eventType === 'job.run.completed' && isErrored)
    Object.assign(data, { runStatus: 'Errored', runStatusCode: 20 });
  return event;
}

const publish = async (eventType: EventType, isErrored = false) =>
  await post(`/api/v2/accounts/${account.id}/events/`, { events: [publishedEvent(eventType, isErrored)] });

/** Steps of a runner, by call or by event. */
const STEPS = {
  start: () => post(runsPath(''), { job_id: jobId, run_id: runId, engine_version: '1.9' }),
  succeed: () => post(runsPath(`${runId}/finish/`), { status: 'success', finished_at: TIMES.finish }),
  fail: () => post(runsPath(`${runId}/finish/`), { status: 'errored', finished_at: TIMES.finish }),
  artifacts: () => post(runsPath(`${runId}/artifacts/`)),
  'publish started': () => publish('job.run.started'),
  'publish errored': () => publish('job.run.errored'),
  'publish completed': () => publish('job.run.completed'),
  'publish completed, errored': () => publish('job.run.completed', true),
};
type Step = keyof typeof STEPS;

/** Returns the recorded events of the run, sorted by type. */
async function sentEvents(): Promise<Pick<JobRunEvent, 'eventType' | 'data'>[]> {
  const { rows } = await harness.database.pool.query(
    'SELECT event_type AS "eventType", data FROM events WHERE account_id = $1 ORDER BY event_type',
    [account.id],
  );
  return rows
    .map(({ eventType, data }: Json) => ({ eventType, data }))
    .filter(({ data }) => data.runId === String(runId));
}

/** Steps, and the resulting record: events sorted by type, the run's status and its finish time. */
const TABLE: [steps: Step[], events: string, status: string, finishedAt: string | null][] = [
  [['publish errored'], 'errored', 'Errored', null],
  [['publish errored', 'artifacts'], 'completed errored', 'Errored', TIMES.errored],
  [['publish errored', 'artifacts', 'artifacts'], 'completed errored', 'Errored', TIMES.errored],
  [['publish errored', 'artifacts', 'fail'], 'completed errored', 'Errored', TIMES.errored],
  [['publish errored', 'fail'], 'errored', 'Errored', TIMES.finish],
  [['publish errored', 'fail', 'fail', 'artifacts'], 'completed errored', 'Errored', TIMES.finish],
  [['publish errored', 'succeed'], 'errored', 'Errored', null],
  [['publish errored', 'start'], 'errored', 'Errored', null],
  [
    ['publish errored', 'publish completed, errored', 'artifacts', 'fail'],
    'completed errored',
    'Errored',
    TIMES.completed,
  ],
  [
    ['publish errored', 'publish started', 'artifacts'],
    'completed errored started',
    'Errored',
    TIMES.errored,
  ],
  [['start', 'artifacts', 'publish errored'], 'errored started', 'Errored', null],
  [['start', 'artifacts', 'publish errored', 'fail'], 'completed errored started', 'Errored', TIMES.finish],
  [
    ['start', 'artifacts', 'publish errored', 'artifacts'],
    'completed errored started',
    'Errored',
    TIMES.errored,
  ],
  [['start', 'publish errored', 'fail', 'artifacts'], 'completed errored started', 'Errored', TIMES.finish],
  [['start', 'fail', 'artifacts'], 'completed errored started', 'Errored', TIMES.finish],
  [
    ['start', 'fail', 'publish errored', 'artifacts'],
    'completed errored errored started',
    'Errored',
    TIMES.finish,
  ],
  [['publish completed'], 'completed', 'Success', TIMES.completed],
  [['publish completed', 'artifacts', 'succeed', 'start'], 'completed', 'Success', TIMES.completed],
  [['publish completed', 'fail'], 'completed', 'Success', TIMES.completed],
  [['publish completed, errored', 'artifacts', 'fail'], 'completed', 'Errored', TIMES.completed],
  [['start', 'publish completed', 'artifacts', 'succeed'], 'completed started', 'Success', TIMES.completed],
  [['publish started'], 'started', 'Running', null],
  [['publish started', 'start', 'artifacts'], 'started', 'Running', null],
  [['publish started', 'succeed', 'artifacts'], 'completed started', 'Success', TIMES.finish],
  [['publish started', 'artifacts', 'fail'], 'completed errored started', 'Errored', TIMES.finish],
];

test.each(TABLE)(
  'after the steps %j the recorded events are: %s',
  async (steps, events, status, finishedAt) => {
    runId += 1;
    for (const step of steps) expect([step, (await STEPS[step]()).status < 500]).toEqual([step, true]);
    const { json } = await harness.call('GET', runsPath(String(runId)), { token: account.token });
    expect([
      runStatusOfCode(json.data.status),
      json.data.finished_at?.replace('.000000', '') ?? null,
    ]).toEqual([status, finishedAt]);
    const sent = await sentEvents();
    expect(sent.map(({ eventType }) => eventType.replace('job.run.', '')).join(' ')).toBe(events);
    for (const { data } of sent) if ('runFinishedAt' in data) expect(data.runFinishedAt).toBe(finishedAt);
  },
);

test('concurrent calls that complete a run send job.run.completed once', async () => {
  runId += 1;
  await STEPS['publish errored']();
  const responses = await Promise.all([STEPS.artifacts(), STEPS.fail(), STEPS.artifacts(), STEPS.fail()]);
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const sent = (await sentEvents()).map(({ eventType }) => eventType);
  expect(sent).toEqual(['job.run.completed', 'job.run.errored']);
});
