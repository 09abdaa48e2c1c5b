import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { inTransaction, openDatabase } from '@runhook/database';
import { eventually, WAIT_TIMEOUT_MS } from '@runhook/testing';
import type { Report } from '../../src/runs/report-plans.ts';
import { ReportRecorder } from '../../src/runs/report-recorder.ts';
import { V2_STATUS } from '../v2-status.ts';
import { type Json, type RunsServer, startRunsServer, withoutDurations } from './runs-server.ts';

let server: RunsServer;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.now() - 3_600_000;
  server = await startRunsServer({ nowMs: () => nowMs });
  const { id } = await server.createJob('Nightly');
  await server.call('POST', '/runs/', {
    job_id: id,
    run_id: 5,
    engine_version: '1.9.0',
    started_at: '2026-01-31T23:00:00Z',
  });
});
afterEach(() => server.close());

const finish = (body: unknown) => server.call('POST', '/runs/5/finish/', body);
const artifacts = () => server.call('POST', '/runs/5/artifacts/');
/** Returns the run as reports return it, without its steps. */
const readStoredRun = async (): Promise<Json> => {
  const { run_steps: _, ...run } = (await server.call('GET', '/runs/5/')).json.data;
  return withoutDurations(run);
};
const seconds = () => `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
const micros = () => `${new Date(nowMs).toISOString().slice(0, 23)}000Z`;

/** Returns the events after the start, with their type and the fields in which events of a run differ. */
async function sent() {
  const [, ...events] = await server.sentEvents();
  return events.map(({ eventType, timestamp, data }) => {
    const { runStatus, runStatusCode, runStatusMessage, runFinishedAt, runErroredAt } = JSON.parse(data);
    return { eventType, timestamp, runStatus, runStatusCode, runStatusMessage, runFinishedAt, runErroredAt };
  });
}

const at = (ms: number) => `${new Date(ms).toISOString().slice(0, -1)}000000Z`;

/** Locks the run's row until the first call waits for it, so that all calls have started before the first one ends. */
async function callConcurrently<T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> {
  const observer = openDatabase({ url: server.databaseUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
  try {
    return await inTransaction(observer.pool, async (transaction) => {
      await transaction.query('SELECT FROM runs WHERE account_id = $1 AND id = 5 FOR UPDATE', [
        server.accountId,
      ]);
      const calls = Array.from({ length: count }, (_, index) => call(index));
      await eventually(async () => {
        const { rows } = await observer.pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        expect(rows).not.toHaveLength(0);
      });
      return calls;
    }).then((calls) => Promise.all(calls));
  } finally {
    await observer.close();
  }
}

describe('POST …/runs/{run_id}/finish/ and …/artifacts/', () => {
  test('send job.run.completed of a successful run once its artifacts are ingested', async () => {
    const runningRun = await readStoredRun();
    const finished = await finish({ status: 'success', finished_at: '2026-01-31T23:30:00Z' });
    const success = {
      ...runningRun,
      status: 10,
      status_code: 10,
      status_humanized: 'Success',
      is_success: true,
      is_complete: true,
      is_running: false,
      in_progress: false,
      finished_at: '2026-01-31T23:30:00.000000Z',
      queued_duration: '00:00:00',
      queued_duration_humanized: '0 seconds',
      duration: '00:30:00',
      duration_humanized: '30 minutes',
      run_duration: '00:30:00',
      run_duration_humanized: '30 minutes',
    };
    expect(finished).toEqual({
      status: 200,
      json: { data: success, status: { code: 200, ...V2_STATUS } },
    });
    expect(await sent()).toEqual([]);
    expect(server.relayed()).toBe(1);

    nowMs += 90_000;
    const ingested = await artifacts();
    expect(ingested).toEqual({
      status: 200,
      json: {
        data: {
          ...success,
          artifacts_ingested_at: micros(),
          artifacts_saved: true,
          has_docs_generated: true,
        },
        status: { code: 200, ...V2_STATUS },
      },
    });
    expect(await sent()).toEqual([
      {
        eventType: 'job.run.completed',
        timestamp: at(nowMs),
        runStatus: 'Success',
        runStatusCode: 10,
        runStatusMessage: 'None',
        runFinishedAt: '2026-01-31T23:30:00Z',
      },
    ]);
    expect(server.relayed()).toBe(2);
  });

  test('send job.run.errored of an errored run at once and job.run.completed after its artifacts', async () => {
    const erroredAtMs = nowMs;
    const finished = await finish({ status: 'errored', status_message: 'model orders failed' });
    const errored = {
      eventType: 'job.run.errored',
      timestamp: at(erroredAtMs),
      runStatus: 'Errored',
      runStatusCode: 20,
      runStatusMessage: 'model orders failed',
      runErroredAt: seconds(),
    };
    const run = {
      status: 20,
      status_humanized: 'Error',
      is_error: true,
      status_message: 'model orders failed',
      finished_at: micros(),
      errored_at: micros(),
    };
    expect(finished.json.data).toMatchObject(run);
    expect(await sent()).toEqual([errored]);

    const { runErroredAt, ...common } = errored;
    nowMs += 90_000;
    expect((await artifacts()).json.data).toMatchObject({ ...run, artifacts_ingested_at: micros() });
    expect(await sent()).toEqual([
      errored,
      { ...common, eventType: 'job.run.completed', timestamp: at(nowMs), runFinishedAt: runErroredAt },
    ]);
    const ids = (await server.sentEvents()).map(({ eventId }) => eventId);
    expect(new Set(ids).size).toBe(3);
  });

  test('send both events, errored first, when an errored finish follows the artifacts', async () => {
    expect((await artifacts()).json.data.artifacts_ingested_at).toBe(micros());
    expect(await sent()).toEqual([]);
    await finish({ status: 'errored', finished_at: '2026-01-31T23:30:00.5Z' });
    expect(await sent()).toMatchObject([
      { eventType: 'job.run.errored', runErroredAt: '2026-01-31T23:30:00Z' },
      { eventType: 'job.run.completed', runFinishedAt: '2026-01-31T23:30:00Z' },
    ]);
  });

  test('send job.run.completed when a successful finish follows the artifacts', async () => {
    await artifacts();
    await finish({ status: 'success' });
    expect((await sent()).map(({ eventType }) => eventType)).toEqual(['job.run.completed']);
  });

  test('record a cancelled run with its artifacts and send nothing', async () => {
    await finish({ status: 'cancelled', status_message: 'by hand' });
    await artifacts();
    expect(await readStoredRun()).toMatchObject({
      status: 30,
      status_humanized: 'Cancelled',
      is_cancelled: true,
      status_message: 'by hand',
      finished_at: micros(),
      errored_at: null,
      artifacts_ingested_at: micros(),
    });
    expect(await server.written()).toEqual({ runs: 1, events: 1, relayed: 1 });
  });

  test('repair invalid text', async () => {
    const { json } = await finish({ status: 'errored', status_message: '\ude80 cut\0' });
    expect(json.data.status_message).toBe('\ufffd cut\ufffd');
  });

  test('return the first report again when a report is repeated, and send nothing', async () => {
    await finish({ status: 'errored', status_message: 'first', finished_at: '2026-01-31T23:30:00Z' });
    const firstResult = (await artifacts()).json.data;
    nowMs += 90_000;
    const repeatResponse = await finish({ status: 'errored', status_message: 'second' });
    expect(repeatResponse).toEqual({
      status: 200,
      json: { data: firstResult, status: { code: 200, ...V2_STATUS } },
    });
    expect(await artifacts()).toEqual(repeatResponse);
    expect(await server.written()).toEqual({ runs: 1, events: 3, relayed: 3 });
  });

  test('reject a second, different end of a run', async () => {
    await finish({ status: 'success' });
    const runBefore = await readStoredRun();
    const { status, json } = await finish({ status: 'errored' });
    expect({ status, message: json.status.user_message }).toEqual({
      status: 409,
      message: 'The run has ended as Success and cannot end as Errored.',
    });
    expect(await readStoredRun()).toEqual(runBefore);
    expect(await server.written()).toEqual({ runs: 1, events: 1, relayed: 1 });
  });

  test('send one set of events for ten concurrent finish calls', async () => {
    await artifacts();
    const responses = await callConcurrently(10, () => finish({ status: 'errored' }));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(new Set(responses.map(({ json }) => JSON.stringify(json))).size).toBe(1);
    expect((await sent()).map(({ eventType }) => eventType)).toEqual([
      'job.run.errored',
      'job.run.completed',
    ]);
  });

  test('accept one of the statuses of concurrent finish calls and reject the others', async () => {
    const statuses = ['success', 'errored', 'cancelled', 'success', 'errored', 'cancelled'];
    const responses = await callConcurrently(6, (index) => finish({ status: statuses[index] }));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409, 409, 409]);
  });

  test('send job.run.completed once for concurrent finish and artifacts calls', async () => {
    await callConcurrently(8, (index) => (index % 2 === 0 ? finish({ status: 'success' }) : artifacts()));
    expect((await sent()).map(({ eventType }) => eventType)).toEqual(['job.run.completed']);
  });

  test.each<[string, unknown, string[]]>([
    ['nothing', undefined, ['body: is required']],
    ['no status', {}, ['status: is required']],
    [
      'everything wrong',
      { status: 'done', status_message: 7, finished_at: 'yesterday' },
      [
        'status: must be one of success, errored, cancelled',
        'status_message: must be a string',
        'finished_at: must be a UTC time like 2026-01-31T23:59:59Z',
      ],
    ],
  ])('reject %s, name every invalid field and change nothing', async (_, body, problems) => {
    const runBefore = await readStoredRun();
    const { status, json } = await finish(body);
    expect({ status, problems: json.status.developer_message.split('\n') }).toEqual({
      status: 400,
      problems,
    });
    expect(await readStoredRun()).toEqual(runBefore);
    expect(await server.written()).toEqual({ runs: 1, events: 1, relayed: 1 });
  });

  test.each(['6', '0', '05', 'five', '9007199254740992', '%00'])(
    'return a 404 for the run %s, which does not exist',
    async (runId) => {
      expect((await server.call('POST', `/runs/${runId}/finish/`, { status: 'success' })).status).toBe(404);
      expect((await server.call('POST', `/runs/${runId}/artifacts/`)).status).toBe(404);
      expect((await server.call('GET', `/runs/${runId}/`)).status).toBe(404);
    },
  );

  test('require job_runner or an admin permission set in this account', async () => {
    const otherTokens = [await server.tokenWith(['developer']), (await server.otherAccount('team')).token];
    for (const token of otherTokens) {
      expect((await server.call('POST', '/runs/5/finish/', { status: 'success' }, token)).status).toBe(403);
      expect((await server.call('POST', '/runs/5/artifacts/', undefined, token)).status).toBe(403);
    }
    expect(await readStoredRun()).toMatchObject({ status: 3, artifacts_ingested_at: null });
  });
});

test('a report that fails does not fail an earlier one of the same batch, whose commit has its result', async () => {
  const { pool } = server.database;
  const fail = (code: string) => `
    CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'of this test' USING ERRCODE = '${code}'; END $$`;
  await pool.query(fail('query_canceled'));
  await pool.query('CREATE TRIGGER fail BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION fail()');
  const { job_id } = await readStoredRun();
  const report = (content: Report['content']): Report => ({
    ...{ accountId: server.accountId, version: null, arrivedAtMs: nowMs, traceContext: null },
    content,
    beforeCommit: () => undefined,
  });
  const start = (run_id?: number) =>
    report({
      call: 'start',
      fields: { job_id, engine_version: '1', ...(run_id !== undefined && { run_id }) },
    });
  const finishOf = (runId: number) => {
    const transition = { call: 'finish', status: 'success' } as const;
    return report({ call: 'finish', runId, transition, details: () => ({}) });
  };
  const record = async (runId: number) => {
    const recorder = new ReportRecorder(server.reportPool);
    const reports = [start(runId), finishOf(runId), start()];
    const results = await recorder.record(server.reportPool, reports, { isBatched: true });
    return results.map(({ outcome, error }) => outcome?.kind ?? (error as Error).message);
  };
  // The failure of a call, then that of an item.
  expect(await record(77)).toEqual(['started', 'of this test', 'started']);
  await pool.query(fail('numeric_value_out_of_range'));
  expect(await record(178)).toEqual(['started', 'of this test', 'started']);
  expect((await server.written()).runs).toBe(5);
});
