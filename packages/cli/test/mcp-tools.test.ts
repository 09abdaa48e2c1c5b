import { expect, test } from '@jest/globals';
import { type Client, RunhookError } from '@runhook/client';
import { z } from 'zod';
import { CHANGE_TOOLS } from '../src/mcp/change-tools.ts';
import { READ_TOOLS } from '../src/mcp/read-tools.ts';
import { originOf, withoutSecrets } from '../src/mcp/tool.ts';

const RUN = {
  id: 7,
  job_id: 12,
  status: 1,
  status_humanized: 'Queued',
  href: 'https://runhook.example.com/runs/7',
};

/** A client that records its calls and returns the result from each. */
function clientOf(result: unknown) {
  const calls: unknown[][] = [];
  const call = (...parts: unknown[]) => {
    calls.push(parts);
    return Promise.resolve(result);
  };
  const jobs = [
    { id: 11, name: 'Nightly build 2' },
    { id: 12, name: 'Nightly build' },
  ];
  async function* list(_path: string, { query }: { query: { name: string } }) {
    yield* jobs.filter(({ name }) => name === query.name);
  }
  return { calls, client: { get: call, post: call, list } as unknown as Client };
}

const runTool = async (name: string, client: Client, input: Record<string, unknown>) =>
  await [...READ_TOOLS, ...CHANGE_TOOLS].find((tool) => tool.name === name)?.run(client, input);

test('trigger_run triggers a job by its name with the overrides that are set', async () => {
  const { calls, client } = clientOf(RUN);
  const input = { job: 'Nightly build', cause: 'a fix', git_branch: 'main', steps_override: ['dbt build'] };
  expect(await runTool('trigger_run', client, input)).toEqual({
    run_id: 7,
    job_id: 12,
    status: 'Queued',
    href: RUN.href,
  });
  const { job: _, ...body } = input;
  expect(calls).toEqual([
    ['/api/v2/accounts/{account_id}/jobs/{job_id}/run', { path: { job_id: 12 }, body }],
  ]);
});

test('get_run_logs shows the end of the log of each step, or of one', async () => {
  const step = (index: number, logs: string | null) => ({
    index,
    name: `step ${index}`,
    status_humanized: 'Success',
    logs,
  });
  const { client } = clientOf({
    ...RUN,
    run_steps: [step(1, 'short'), step(2, `${'x'.repeat(200)}the end`), step(3, null)],
  });
  const { steps } = (await runTool('get_run_logs', client, { run_id: 7, characters: 100 })) as {
    steps: { logs: string; is_log_shortened: boolean }[];
  };
  expect(steps).toMatchObject([
    { index: 1, logs: 'short', is_log_shortened: false },
    { index: 2, logs: `${'x'.repeat(93)}the end`, is_log_shortened: true },
    { index: 3, logs: '', is_log_shortened: false },
  ]);
  expect(await runTool('get_run_logs', client, { run_id: 7, characters: 100, step: 3 })).toMatchObject({
    status: 'Queued',
    steps: [{ index: 3 }],
  });
  const input = z.object(READ_TOOLS.find(({ name }) => name === 'get_run_logs')?.input ?? {});
  expect([0, -1].map((step) => input.safeParse({ run_id: 7, step }).success)).toEqual([true, false]);
});

test('list_run_notifications omits the webhooks without a delivery if they cannot be read', async () => {
  const list = async function* (path: string) {
    if (path.endsWith('/unnotified')) throw new RunhookError(429, 'Too many requests.');
    yield* [];
  };
  const client = { get: async () => [], list } as unknown as Client;
  const result = await runTool('list_run_notifications', client, { run_id: 7, limit: 10 });
  expect(result).toEqual({ events: [], deliveries: [] });
});

test('results have no credentials and no paths of endpoints', () => {
  const text = 'key rhu_0123456789abcdef, secret whsec_MDEyMzQ1Njc4OWFi+/==, own token';
  expect(withoutSecrets(text, ['own token'])).toBe('key rhu_[removed], secret whsec_[removed], [removed]');
  const log = JSON.stringify('token:\nrhs_0123456789abcdef\u001b[31mrhs_0123456789abcdef');
  expect(withoutSecrets(log, [])).not.toContain('0123456789');
  expect(originOf('https://user:word@hooks.example.com:8443/T1/secret?key=1')).toBe(
    'https://hooks.example.com:8443',
  );
});
