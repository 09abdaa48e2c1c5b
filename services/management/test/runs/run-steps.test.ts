import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { UnbatchedReportError } from '../../src/http/errors.ts';
import { NO_RECORDING } from '../../src/http/idempotency.ts';
import { createRuns } from '../../src/runs/runs.ts';
import { loadRunSteps } from '../../src/runs/step-statements.ts';
import { type Json, type RunsServer, startRunsServer } from './runs-server.ts';

const QUOTA = 300_000;
const STEP = { index: 1, name: 'Invoke dbt with `dbt build`', status: 3 };
const DONE = {
  index: 1,
  name: 'Invoke dbt with `dbt build`',
  status: 'Success',
  started_at: '2026-01-31T23:00:00.5Z',
  finished_at: '2026-01-31T23:01:34.75Z',
  logs: '\u001b[32mDone\u001b[0m\n',
  debug_logs: 'details\n',
};

let server: RunsServer;
beforeEach(async () => {
  server = await startRunsServer({ stepsBytesMax: QUOTA });
  const { id } = await server.createJob('Nightly');
  for (const run_id of [5, 6])
    await server.call('POST', '/runs/', { job_id: id, run_id, engine_version: '1' });
});
afterEach(() => server.close());

const report = (run_steps: unknown, runId = 5) => server.call('POST', `/runs/${runId}/steps/`, { run_steps });
const finish = (body: object, headers?: Record<string, string>) =>
  server.call('POST', '/runs/5/finish/', { status: 'success', ...body }, undefined, headers);
const steps = async (query = ''): Promise<Json> =>
  (await server.call('GET', `/runs/5/steps/${query}`)).json.data;
const usage = async () =>
  (await server.database.pool.query('SELECT bytes::int FROM run_steps_usage')).rows[0]?.bytes ?? 0;
const storedBytes = async () =>
  (await server.database.pool.query('SELECT coalesce(sum(stored_bytes), 0)::int AS bytes FROM run_steps'))
    .rows[0].bytes;

describe('POST …/runs/{run_id}/steps/', () => {
  test('stores steps of a run in progress, and replaces those with the same index', async () => {
    const first = await report([STEP, { index: 2, name: 'Second', status: 1 }]);
    expect(first.status).toBe(200);
    const second = await report([DONE]);
    const { data } = second.json;
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(data).toEqual([
      {
        id: expect.any(Number),
        run_id: 5,
        account_id: server.accountId,
        index: 1,
        name: 'Invoke dbt with `dbt build`',
        status: 10,
        status_humanized: 'Success',
        started_at: '2026-01-31T23:00:00.500000Z',
        finished_at: '2026-01-31T23:01:34.750000Z',
        duration: '00:01:34',
        duration_humanized: '1 minute, 34 seconds',
        created_at: time,
        updated_at: time,
        logs_bytes: 14,
        debug_logs_bytes: 8,
      },
      expect.objectContaining({ index: 2, status: 1, status_humanized: 'Queued', started_at: null }),
    ]);
    expect(data[0]).toMatchObject({ id: first.json.data[0].id, created_at: first.json.data[0].created_at });
    expect(data[0].updated_at > data[0].created_at).toBe(true);
    expect(await server.sentEvents()).toHaveLength(2);
    expect(await usage()).toBe(await storedBytes());
  });

  test('is a 404 for an unknown run, and a 409 once the run has ended', async () => {
    expect((await report([STEP], 7)).status).toBe(404);
    await finish({ status: 'errored' });
    const late = await report([STEP]);
    expect(late.status).toBe(409);
    expect(late.json.status.user_message).toBe('The run is not in progress: its status is Errored.');
    expect(await storedBytes()).toBe(0);
  });

  test('is a 400 for invalid steps, with the field of each problem', async () => {
    const invalid = await report([{ ...STEP, status: 'Fine' }, { index: 2 }]);
    expect(invalid.status).toBe(400);
    expect(invalid.json.status.errors.map(({ field }: { field: string }) => field)).toEqual([
      'run_steps.0.status',
      'run_steps.1.name',
      'run_steps.1.status',
    ]);
    const repeated = await report([STEP, STEP]);
    expect(repeated.json.status.errors).toEqual([
      { field: 'run_steps.1', message: 'contains a duplicate value' },
    ]);
    for (const run_steps of [undefined, null, [], {}]) expect((await report(run_steps)).status).toBe(400);
  });

  test('needs the permission to report runs', async () => {
    const reader = await server.tokenWith(['read_only']);
    const body = { run_steps: [STEP] };
    expect((await server.call('POST', '/runs/5/steps/', body, reader)).status).toBe(403);
    expect((await server.call('GET', '/runs/5/steps/', undefined, reader)).status).toBe(200);
    const { token } = await server.otherAccount('free');
    expect((await server.call('GET', '/runs/5/steps/', undefined, token)).status).toBe(403);
  });

  test('repeats its response to a repeated Idempotency-Key', async () => {
    const send = () =>
      server.call('POST', '/runs/5/steps/', { run_steps: [DONE] }, undefined, { 'idempotency-key': 'a' });
    const first = await send();
    expect(first.status).toBe(200);
    expect((await send()).json).toEqual(first.json);
  });

  test('keeps the end of a text above 1 MB', async () => {
    const { status } = await report([{ ...STEP, logs: `first\n${'x'.repeat(1_100_000)}\nlast` }]);
    expect(status).toBe(200);
    const [step] = await steps();
    expect(step.logs).toMatch(/^\[This log had 1100011 bytes\. Only its end is stored\.\]\nx+\nlast$/);
    expect(step.logs_bytes).toBe(1_000_000);
    expect(step.logs_bytes).toBe(Buffer.byteLength(step.logs));
  });

  test('limits the steps and the text of a run, the size of a call, and the stored bytes of the account', async () => {
    const many = Array.from({ length: 100 }, (_, index) => ({ ...STEP, index }));
    expect((await report(many)).status).toBe(200);
    expect((await report([{ ...STEP, index: 100 }])).json.status).toMatchObject({
      code: 409,
      user_message: 'The run would have 101 steps; it may have 100.',
    });
    expect((await report([{ ...STEP, index: 99, name: 'Replaced' }])).status).toBe(200);

    const long = 'x'.repeat(1_000_000);
    for (let index = 0; index < 20; index += 2)
      expect((await report([0, 1].map((one) => ({ ...STEP, index: index + one, logs: long })))).status).toBe(
        200,
      );
    expect(await steps()).toHaveLength(100);
    expect((await report([{ ...STEP, index: 20, debug_logs: 'x' }])).json.status).toMatchObject({
      code: 409,
      user_message: 'The logs of the run would have 20000001 bytes; they may have 20000000.',
    });
    expect((await report([0, 1, 2, 3, 4].map((index) => ({ ...STEP, index, logs: long })))).status).toBe(413);

    let text = '';
    while (text.length < 900_000) text += Math.random().toString(36);
    const full = await report([{ ...STEP, logs: text }], 6);
    expect(full.json.status).toMatchObject({
      code: 409,
      user_message: `The steps exceed the ${QUOTA} bytes of compressed run steps that an account may have.`,
    });
    expect(await usage()).toBe(await storedBytes());
    expect(await usage()).toBeLessThan(QUOTA);
  });

  test('concurrent calls for one run do not exceed its limits', async () => {
    const chunk = (first: number) =>
      Array.from({ length: 30 }, (_, index) => ({ ...STEP, index: first + index }));
    const results = await Promise.all([0, 30, 60, 90].map((first) => report(chunk(first))));
    expect(results.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409]);
    expect(await steps()).toHaveLength(90);
    expect(await usage()).toBe(await storedBytes());
  });
});

describe('POST …/runs/{run_id}/finish/ with run_steps', () => {
  test('commits steps and state together, with and without an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'b' };
    const finished = await finish({ run_steps: [DONE], status: 'errored' }, headers);
    expect(finished.status).toBe(200);
    expect(await steps()).toMatchObject([{ index: 1, status: 10, logs: DONE.logs }]);
    expect((await server.sentEvents()).map(({ eventType }) => eventType)).toEqual([
      'job.run.started',
      'job.run.started',
      'job.run.errored',
    ]);
    // A repeat, such as after a lost response, replaces no step that has ended, and sends nothing.
    const repeated = await finish({ run_steps: [{ ...DONE, logs: 'again' }], status: 'errored' });
    expect(repeated.json.data).toEqual(finished.json.data);
    expect(await steps()).toMatchObject([{ logs: DONE.logs }]);
    expect(await server.sentEvents()).toHaveLength(3);
  });

  test('completes the steps of a run that was cancelled meanwhile', async () => {
    await report([DONE, { ...STEP, index: 2 }]);
    expect((await server.call('POST', '/runs/5/cancel/')).status).toBe(200);
    const ended = [
      { ...DONE, logs: 'again' },
      { ...DONE, index: 2, status: 30 },
      { ...DONE, index: 3 },
    ];
    expect((await finish({ run_steps: ended, status: 'cancelled' })).status).toBe(200);
    expect(await steps()).toMatchObject([{ logs: DONE.logs }, { index: 2, status: 30 }, { index: 3 }]);
    expect(await usage()).toBe(await storedBytes());
  });

  test('leaves its batch before the steps are compressed', async () => {
    const { servicePool: pool, accountId } = server;
    const runs = createRuns({ pool, reportPool: pool, relay: { add: () => {} }, stepsBytesMax: QUOTA });
    const compressed = jest.fn(() => null);
    const step = Object.defineProperty({ ...DONE }, 'logs', { get: compressed, enumerable: true });
    const finishing = runs.finish(
      { accountId, version: null, recorder: NO_RECORDING },
      5,
      { status: 'success', run_steps: [step as never] },
      () => ({ code: 200, data: null }),
    );
    await expect(finishing).rejects.toThrow(UnbatchedReportError);
    expect(compressed).not.toHaveBeenCalled();
  });

  test('stores no step if it is rejected, and does not end the run if the steps are rejected', async () => {
    await report([DONE]);
    let text = '';
    while (text.length < 900_000) text += Math.random().toString(36);
    const full = await finish({ run_steps: [{ ...STEP, index: 2, logs: text }] });
    expect(full.status).toBe(409);
    expect((await server.call('GET', '/runs/5/')).json.data.finished_at).toBeNull();
    expect(await server.sentEvents()).toHaveLength(2);

    expect((await finish({})).status).toBe(200);
    const conflict = await finish({ status: 'errored', run_steps: [{ ...STEP, index: 3 }] });
    expect(conflict.status).toBe(409);
    expect(await steps()).toMatchObject([{ index: 1 }]);
    const unknown = await server.call('POST', '/runs/7/finish/', { status: 'success', run_steps: [STEP] });
    expect(unknown.status).toBe(404);
    expect(await usage()).toBe(await storedBytes());
  });

  test.each([null, []])('with %j is a finish without steps', async (run_steps) => {
    expect((await finish({ run_steps })).status).toBe(200);
    expect(await steps()).toEqual([]);
  });
});

describe('GET …/runs/{run_id}/steps/', () => {
  test('has the logs, the debug logs only on request, and no logs if they are not wanted', async () => {
    await report([DONE, { ...STEP, index: 2 }]);
    const [first, second] = await steps();
    expect(first).toMatchObject({ logs: DONE.logs });
    expect(first).not.toHaveProperty('debug_logs');
    expect(second).toMatchObject({ logs: null });
    expect((await steps('?include_related=debug_logs'))[0]).toMatchObject({
      logs: DONE.logs,
      debug_logs: DONE.debug_logs,
    });
    expect((await steps('?logs=false'))[0]).not.toHaveProperty('logs');
    expect((await server.call('GET', '/runs/5/steps/?logs=maybe')).status).toBe(400);
    expect((await server.call('GET', '/runs/7/steps/')).status).toBe(404);
  });

  test('has the text of a step for itself, as a file that no browser executes', async () => {
    await report([
      { ...DONE, logs: '<script>alert(1)</script>' },
      { ...STEP, index: 2 },
    ]);
    const response = await server.fetch('/runs/5/steps/1/logs');
    expect(await response.text()).toBe('<script>alert(1)</script>');
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': 'attachment; filename=run-5-step-1.log',
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    expect(await (await server.fetch('/runs/5/steps/1/debug_logs/')).text()).toBe(DONE.debug_logs);
    for (const path of [
      '/runs/5/steps/2/logs',
      '/runs/5/steps/3/logs',
      '/runs/5/steps/x/logs',
      '/runs/7/steps/1/logs',
    ])
      expect((await server.fetch(path)).status).toBe(404);
  });
});

test('a run has its steps, with the texts that include_related requests, and a list only requested steps', async () => {
  await report([DONE]);
  const stepsOf = async (query: string) =>
    (await server.call('GET', `/runs/5/${query}`)).json.data.run_steps as Json[];
  const listed = async (query: string) =>
    (await server.call('GET', `/runs/?order_by=id&${query}`)).json.data.map((run: Json) => run.run_steps);
  const [step] = await stepsOf('');
  expect(step).toMatchObject({ index: 1, status: 10, logs_bytes: 14 });
  expect(step).not.toHaveProperty('logs');
  expect(await stepsOf('?include_related=run_steps')).toEqual([{ ...step, logs: DONE.logs }]);
  const withBoth = [{ ...step, logs: DONE.logs, debug_logs: DONE.debug_logs }];
  for (const query of ['?include_related=debug_logs', '?include_related=["run_steps","debug_logs"]'])
    expect(await stepsOf(query)).toEqual(withBoth);
  expect(await listed('')).toEqual([undefined, undefined]);
  expect(await listed('include_related=run_steps')).toEqual([[{ ...step, logs: DONE.logs }], []]);
});

test('loadRunSteps leaves out the texts of a list of runs beyond the limit, newest run first', async () => {
  const long = 'x'.repeat(1_000_000);
  for (const runId of [5, 6])
    for (let index = 0; index < 12; index += 3)
      await report(
        [0, 1, 2].map((one) => ({ ...STEP, index: index + one, logs: long })),
        runId,
      );
  const loaded = await loadRunSteps(server.servicePool, server.accountId, [5, 6, 7]);
  expect([...loaded.keys()]).toEqual([6, 5]);
  expect(loaded.get(6)?.every(({ logs }) => logs === long)).toBe(true);
  const texts = loaded.get(5)?.map(({ logs }) => logs) ?? [];
  expect(texts.slice(0, 8)).toEqual(new Array(8).fill(long));
  expect(texts[8]).toContain(`read it at /api/v2/accounts/${server.accountId}/runs/5/steps/8/logs/`);
});
