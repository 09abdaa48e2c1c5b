import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type Receiver, type ReceiverResponse, startReceiver } from '@runhook/testing';
import { type Claim, type ClaimedRun, executeClaimed, type RunResult } from '../src/claimed-run.ts';
import { RunnerApi } from '../src/runner-api.ts';

const RUNS = '/api/v2/accounts/1/runs/5/';
const STEP = { index: 1, name: 'dbt build', status: 10 } as const;
const CLAIM: Claim = {
  run: {
    id: 5,
    job_id: 1,
    job_name: 'Nightly',
    project_id: 1,
    project_name: 'Analytics',
    environment_id: 1,
    environment_name: 'Production',
    status: 3,
    trigger: {},
  },
  execute_steps: [],
  lease_token: 't',
  attempt: 1,
};

let service: Receiver;
/** Responses to a path, each to one call; others succeed. */
let responses: Record<string, ReceiverResponse[]>;
beforeEach(async () => {
  responses = {};
  service = await startReceiver();
  service.respondWith(({ path }) => {
    const body = JSON.stringify({ data: { run: { status: 3 } } });
    return responses[path.replace(RUNS, '')]?.shift() ?? { status: 200, body };
  });
});
afterEach(() => service.close());

function rejection(status: number, headers: Record<string, string> = {}): ReceiverResponse {
  return { status, headers, body: JSON.stringify({ status: { user_message: 'Rejected.' } }) };
}

const execute = (work: (run: ClaimedRun) => Promise<RunResult>, claim = CLAIM) =>
  executeClaimed(new RunnerApi({ url: service.url, token: 'x', accountId: 1 }), claim, work);

/** Returns the calls other than heartbeats: the path below the run, and the body. */
const calls = () =>
  service.requests
    .map(({ path, body }) => [path.replace(RUNS, ''), JSON.parse(body.toString())])
    .filter(([path]) => path !== 'heartbeat/');

const succeed = async (run: ClaimedRun): Promise<RunResult> => {
  await run.reportSteps([STEP]);
  return { status: 'success' };
};

test('a conflict that is no loss of the lease, such as a used quota, ends the run as errored', async () => {
  responses['steps/'] = [rejection(409)];
  await execute(succeed);
  expect(calls().slice(1)).toEqual([
    ['finish/', { status: 'errored', status_message: 'Rejected.' }],
    ['artifacts/', {}],
  ]);
});

test('a run that another runner has, or that has ended, is not finished', async () => {
  responses['steps/'] = [rejection(409, { 'lease-lost': 'true' })];
  await expect(execute(succeed)).rejects.toMatchObject({ status: 409, isLeaseLost: true });
  expect(calls().map(([path]) => path)).toEqual(['steps/']);
});

test.each([
  [409, { status: 'success' }],
  [400, { status: 'errored', status_message: 'Rejected.' }],
])('a result that is rejected with %d still ends the run', async (code, end) => {
  responses['finish/'] = [rejection(code)];
  const result = execute(async () => ({ status: 'success', steps: [STEP] }));
  await expect(result).rejects.toMatchObject({ status: code });
  expect(calls()).toEqual([
    ['finish/', { status: 'success', run_steps: [STEP] }],
    ['finish/', end],
    ['artifacts/', {}],
  ]);
});

test('a call whose response is cut off is repeated', async () => {
  responses['finish/'] = [{ status: 200, body: '{"data": {"run"' }];
  await execute(async () => ({ status: 'success' }));
  expect(calls()).toEqual([
    ['finish/', { status: 'success' }],
    ['finish/', { status: 'success' }],
    ['artifacts/', {}],
  ]);
});

test('a run whose execution fails before its start is started, and ends as errored', async () => {
  const claim = { ...CLAIM, run: { ...CLAIM.run, status: 2 } };
  await execute(() => Promise.reject(new Error('This runner has no commands.')), claim);
  expect(calls()).toMatchObject([
    ['start/', { engine_version: 'unknown' }],
    ['finish/', { status: 'errored', status_message: 'This runner has no commands.' }],
    ['artifacts/', {}],
  ]);
});

test('a file whose path a URL would resolve is not sent', async () => {
  await execute(async (run) => {
    for (const path of ['', '../finish', 'a/./b', 'a//b'])
      await expect(run.uploadArtifact(path, Buffer.from('x'))).rejects.toThrow(TypeError);
    return { status: 'success' };
  });
  expect(calls().map(([path]) => path)).toEqual(['finish/', 'artifacts/']);
});
