import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
import { eventually } from '@runhook/testing';
import { V2_STATUS } from '../v2-status.ts';
import { type Json, type RunsServer, startRunsServer, withoutDurations } from './runs-server.ts';

const ARRIVED_AT_MS = Date.now() - 60_000;
const ARRIVED_AT = `${new Date(ARRIVED_AT_MS).toISOString().slice(0, 23)}000Z`;

const STARTED_AT = '2026-01-31T23:00:00.000000Z';

let server: RunsServer;
let job: JobView;
beforeEach(async () => {
  server = await startRunsServer({ nowMs: () => ARRIVED_AT_MS });
  job = await server.createJob('Nightly');
});
afterEach(() => server.close());

const start = (body: object, token?: string) =>
  server.call('POST', '/runs/', { job_id: job.id, engine_version: '1.9.0', ...body }, token);

describe('POST …/runs/', () => {
  test('starts a run, assigns its id and sends job.run.started', async () => {
    const { status, json } = await start({ reason: 'Scheduled', started_at: '2026-01-31T23:00:00Z' });
    expect(status).toBe(201);
    expect({ ...json, data: withoutDurations(json.data) }).toEqual({
      data: {
        id: 1,
        account_id: server.accountId,
        job_id: job.id,
        job_definition_id: job.id,
        job_name: 'Nightly',
        project_id: job.project_id,
        project_name: 'Analytics',
        environment_id: job.environment_id,
        environment_name: 'Production',
        engine_version: '1.9.0',
        dbt_version: '1.9.0',
        status: 3,
        status_code: 3,
        status_humanized: 'Running',
        status_message: null,
        is_success: false,
        is_error: false,
        is_cancelled: false,
        is_complete: false,
        is_running: true,
        in_progress: true,
        reason: 'Scheduled',
        git_sha: null,
        git_branch: null,
        created_at: json.data.created_at,
        updated_at: json.data.created_at,
        should_start_at: json.data.created_at,
        dequeued_at: STARTED_AT,
        started_at: STARTED_AT,
        finished_at: null,
        errored_at: null,
        artifacts_ingested_at: null,
        artifacts_saved: false,
        has_docs_generated: false,
        has_sources_generated: false,
        href: expect.stringMatching(
          new RegExp(`^http://127\\.0\\.0\\.1:\\d+/accounts/${server.accountId}/runs/1/$`),
        ),
        trigger_id: 1,
        trigger: {
          id: 1,
          job_id: job.id,
          job_definition_id: job.id,
          cause: 'Scheduled',
          cause_category: 'other',
          created_at: json.data.created_at,
          git_branch: null,
          git_sha: null,
          azure_pull_request_id: null,
          github_pull_request_id: null,
          gitlab_merge_request_id: null,
          schema_override: null,
          dbt_version_override: null,
          threads_override: null,
          target_name_override: null,
          generate_docs_override: null,
          timeout_seconds_override: null,
          steps_override: null,
        },
        retry_of: null,
        deferring_run_id: null,
      },
      status: { code: 201, ...V2_STATUS },
    });
    const { rows } = await server.database.pool.query('SELECT created_at FROM runs');
    expect(json.data.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(Date.parse(json.data.created_at)).toBe(rows[0].created_at.getTime());
    const [event, ...otherEvents] = await server.sentEvents();
    expect(otherEvents).toEqual([]);
    expect(event).toEqual({
      eventId: expect.stringMatching(/^wev_[0-9A-Za-z]{27}$/),
      accountId: server.accountId,
      eventType: 'job.run.started',
      timestamp: `${new Date(ARRIVED_AT_MS).toISOString().slice(0, -1)}000000Z`,
      data:
        `{"jobId":"${job.id}","jobName":"Nightly","runId":"1","environmentId":"${job.environment_id}",` +
        `"environmentName":"Production","engineVersion":"1.9.0","projectName":"Analytics",` +
        `"projectId":"${job.project_id}","runStatus":"Running","runStatusCode":3,"runStatusMessage":"None",` +
        `"runReason":"Scheduled","runStartedAt":"2026-01-31T23:00:00Z"}`,
    });
    expect(server.relayed()).toBe(1);
  });

  test('uses "None" and the time of the call for a missing reason and start time', async () => {
    const { json } = await start({ reason: '', started_at: null, run_id: null });
    expect(json.data).toMatchObject({ reason: null, started_at: ARRIVED_AT });
    const [event] = await server.sentEvents();
    expect(JSON.parse(event?.data ?? '')).toMatchObject({
      runReason: 'None',
      runStartedAt: `${ARRIVED_AT.slice(0, 19)}Z`,
    });
  });

  test('repairs invalid text in the response, the record and the event', async () => {
    const { status, json } = await start({ reason: 'cut \ud83d', engine_version: '1\0\ufdd0' });
    expect(status).toBe(201);
    const repaired = { reason: 'cut \ufffd', engine_version: '1\ufffd\ufffd' };
    expect(json.data).toMatchObject(repaired);
    expect((await server.call('GET', `/runs/${json.data.id}/`)).json.data).toMatchObject(repaired);
    const [event] = await server.sentEvents();
    expect(JSON.parse(event?.data ?? '')).toMatchObject({
      runReason: repaired.reason,
      engineVersion: repaired.engine_version,
    });
  });

  test('counts code points, so that an emoji is one character', async () => {
    expect((await start({ engine_version: '🚀'.repeat(255) })).status).toBe(201);
    expect((await start({ engine_version: '🚀'.repeat(256) })).status).toBe(400);
  });

  test('keeps the microseconds of the start time, and truncates the rest; the event has seconds', async () => {
    const { json } = await start({ started_at: '2026-01-31T23:00:00.999999999Z' });
    expect(json.data.started_at).toBe('2026-01-31T23:00:00.999999Z');
    const stored = await server.call('GET', `/runs/${json.data.id}`);
    expect(stored.json.data.started_at).toBe('2026-01-31T23:00:00.999999Z');
    const [event] = await server.sentEvents();
    expect(JSON.parse(event?.data ?? '').runStartedAt).toBe('2026-01-31T23:00:00Z');
  });

  test('keeps a client-supplied id, and returns the first run when it is repeated', async () => {
    const firstResponse = await start({ run_id: 9_007_199_254_740_991, reason: 'first' });
    expect(firstResponse).toMatchObject({
      status: 201,
      json: { data: { id: 9_007_199_254_740_991, reason: 'first' } },
    });
    const repeatResponse = await start({
      run_id: 9_007_199_254_740_991,
      reason: 'second',
      engine_version: '2.0.0',
    });
    expect(repeatResponse).toMatchObject({
      status: 200,
      json: { data: withoutDurations(firstResponse.json.data), status: { code: 200, ...V2_STATUS } },
    });
    expect(await server.written()).toEqual({ runs: 1, events: 1, relayed: 1 });
    expect(server.relayed()).toBe(1);
  });

  test('creates one run and one event for ten concurrent starts with the same id', async () => {
    const responses = await Promise.all(Array.from({ length: 10 }, () => start({ run_id: 77 })));
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(await server.written()).toEqual({ runs: 1, events: 1, relayed: 1 });
  });

  test('recognizes a run that another process starts concurrently, and records the other reports of the same commit', async () => {
    const { pool } = server.database;
    const otherClient = await pool.connect();
    try {
      await otherClient.query('BEGIN');
      await otherClient.query(
        `INSERT INTO runs SELECT $1, 77, $2, 'Nightly', 1, 'p', 1, 'e', '1', 'Running', NULL, NULL, now()`,
        [server.accountId, job.id],
      );
      const responses = [start({ run_id: 77 }), start({ run_id: 78 })];
      const waitingBackends = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      await eventually(async () => expect((await pool.query(waitingBackends)).rowCount).toBeGreaterThan(0));
      await otherClient.query('COMMIT');
      expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 201]);
    } finally {
      otherClient.release();
    }
    expect(await server.written()).toEqual({ runs: 2, events: 1, relayed: 1 });
  });

  test('rejects the id of another job’s run with a 409 and changes nothing', async () => {
    await start({ run_id: 77 });
    const otherClient = await server.createJob('Hourly');
    const { status, json } = await start({ run_id: 77, job_id: otherClient.id });
    expect({ status, message: json.status.user_message }).toEqual({
      status: 409,
      message: 'Run 77 belongs to another job.',
    });
    expect(await server.written()).toEqual({ runs: 1, events: 1, relayed: 1 });
  });

  test('accepts the same run id in different accounts', async () => {
    const otherClient = await server.otherAccount('team');
    const otherJob = await server.createJob('Nightly', otherClient.id);
    await server.database.pool.query(
      `INSERT INTO runs SELECT $1, 77, $2, 'j', 1, 'p', 1, 'e', '1', 'Running', NULL, NULL, now()`,
      [otherClient.id, otherJob.id],
    );
    expect((await start({ run_id: 77 })).status).toBe(201);
  });

  test('never assigns an id that a runner has supplied, even after a long range of them', async () => {
    await server.database.pool.query(
      `INSERT INTO runs SELECT $1, taken, $2, 'j', 1, 'p', 1, 'e', '1', 'Running', NULL, NULL, now()
       FROM generate_series(1, 1500) AS taken`,
      [server.accountId, job.id],
    );
    const responses = await Promise.all(Array.from({ length: 10 }, () => start({})));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(201));
    expect(new Set(responses.map(({ json }) => json.data.id)).size).toBe(10);
    expect((await server.written()).runs).toBe(1510);
  });

  const ids = (responses: { json: Json }[]) =>
    responses.map(({ json }) => json.data.id).sort((one, other) => one - other);
  const range = (first: number, length: number) => Array.from({ length }, (_, index) => first + index);
  const startMany = (count: number) => Promise.all(Array.from({ length: count }, () => start({})));

  test('assigns consecutive ids to each account, whatever other accounts have', async () => {
    expect(ids(await startMany(20))).toEqual(range(1, 20));
    const other = await server.otherAccount('team');
    const otherJob = await server.createJob('Nightly', other.id);
    const text = `INSERT INTO runs SELECT $1, 500, $2, 'j', 1, 'p', 1, 'e', '1', 'Running', NULL, NULL, now()`;
    await server.database.pool.query(text, [other.id, otherJob.id]);
    expect(ids([await start({})])[0]).toBeLessThan(500);
  });

  test('follows client-supplied ids up to 2^52, and is not moved by larger ones', async () => {
    expect((await start({ run_id: 2 ** 53 - 1 })).status).toBe(201);
    expect(ids(await startMany(100))).toEqual(range(1, 100));
    await start({ run_id: 5_000 });
    expect(ids([await start({})])).toEqual([5_001]);
    expect(ids(await Promise.all([start({ run_id: 7_000 }), start({})]))[1]).toBeGreaterThan(5_001);
    await start({ run_id: 2 ** 52 });
    await server.database.pool.query(
      `INSERT INTO runs SELECT $1, $3::bigint + taken, $2, 'j', 1, 'p', 1, 'e', '1', 'Running', NULL, NULL, now()
       FROM generate_series(1, 1500) AS taken`,
      [server.accountId, job.id, 2 ** 52],
    );
    expect(ids(await startMany(10))).toEqual(range(2 ** 52 + 1_501, 10));
  });

  test('assigns ids while the transaction of a start with an Idempotency-Key is open', async () => {
    const { pool } = server.database;
    await pool.query(`
      CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(12); RETURN NEW; END $$;
      CREATE TRIGGER wait BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()`);
    const locker = await pool.connect();
    try {
      await locker.query('BEGIN; SELECT pg_advisory_xact_lock(12)');
      const headers = { 'idempotency-key': 'first' };
      const body = { job_id: job.id, engine_version: '1' };
      const keyed = server.call('POST', '/runs/', body, server.token, headers);
      const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
      await eventually(async () => expect((await pool.query(waiting)).rows).toHaveLength(1));
      expect(ids(await startMany(3))).toEqual([2, 3, 4]);
      await locker.query('COMMIT');
      expect((await keyed).json.data.id).toBe(1);
    } finally {
      locker.release();
    }
  });

  test.each<[string, unknown, string[]]>([
    ['nothing', undefined, ['body: is required']],
    ['a text', '"run"', ['body: must be of type object']],
    ['broken JSON', '{"job_id":', ['body: must be valid JSON']],
    ['no fields', {}, ['job_id: is required', 'engine_version: is required']],
    [
      'wrong types',
      { job_id: '1', run_id: 1.5, reason: 7, engine_version: '', started_at: 1_767_225_600 },
      [
        'job_id: must be a positive integer',
        'run_id: must be a positive integer',
        'reason: must be a string',
        'engine_version: is not allowed to be empty',
        'started_at: must be a string',
      ],
    ],
    [
      'what is too big',
      { job_id: 1, run_id: 2 ** 53, reason: 'x'.repeat(65_537), engine_version: 'x'.repeat(256) },
      [
        'run_id: must be a positive integer',
        'reason: length must be less than or equal to 65536 characters long',
        'engine_version: length must be less than or equal to 255 characters long',
      ],
    ],
    ['an unknown job', { job_id: 4711, engine_version: '1' }, ['job_id: 4711 is not a job of this account']],
  ])('rejects %s, names every invalid field and writes nothing', async (_, body, problems) => {
    const { status, json } = await server.call('POST', '/runs/', body);
    expect({ status, problems: json.status.developer_message.split('\n') }).toEqual({
      status: 400,
      problems,
    });
    expect(await server.written()).toEqual({ runs: 0, events: 0, relayed: 0 });
    expect(server.relayed()).toBe(0);
  });

  test.each([
    '',
    '2026-01-31',
    '2026-02-30T00:00:00Z',
    '2026-01-31T23:00:00+02:00',
    '0000-01-01T00:00:00Z',
    'now',
  ])('rejects the start time %j', async (started_at) => {
    const { status, json } = await start({ started_at });
    expect(status).toBe(400);
    expect(json.status.developer_message).toMatch(/^started_at: /);
    expect(await server.written()).toEqual({ runs: 0, events: 0, relayed: 0 });
  });

  test('rejects a job of another account as unknown', async () => {
    const foreign = await server.createJob('Nightly', (await server.otherAccount('team')).id);
    const { status, json } = await start({ job_id: foreign.id });
    expect(status).toBe(400);
    expect(json.status.developer_message).toBe(`job_id: ${foreign.id} is not a job of this account`);
  });

  test('requires job_runner or an admin permission set', async () => {
    for (const permissionSet of ['job_runner', 'admin', 'account_admin'] as const) {
      expect((await start({}, await server.tokenWith([permissionSet]))).status).toBe(201);
    }
    for (const permissionSet of ['developer', 'member', 'read_only'] as const) {
      expect((await start({}, await server.tokenWith([permissionSet]))).status).toBe(403);
    }
    expect((await start({}, (await server.otherAccount('enterprise')).token)).status).toBe(403);
    expect((await start({}, 'rhs_nobody')).status).toBe(401);
    expect((await server.written()).runs).toBe(3);
  });
});
