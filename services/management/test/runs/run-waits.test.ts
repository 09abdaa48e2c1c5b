import { afterEach, expect, test } from '@jest/globals';
import type { Queryable } from '@runhook/database';
import { RunWaits, type WaitTarget } from '../../src/runs/run-waits.ts';

const WAIT_MS = 30_000;

let waits: RunWaits;
afterEach(() => waits.close());

/** Returns the waits with a database in which run 5 has ended. @param claimable the claimable runs, or the error of counting them. */
function openWaits(claimable: { job_id: string; count: string }[] | Error): { accountIds: unknown[] } {
  const read: { accountIds: unknown[] } = { accountIds: [] };
  const query = async ({ text, values }: { text: string; values: unknown[] }) => {
    if (!text.includes('run_requests')) return { rows: [{ account_id: '1', run_id: '5' }] };
    read.accountIds.push(values[0]);
    if (claimable instanceof Error) throw claimable;
    return { rows: claimable.splice(0).map((row) => ({ account_id: '1', ...row })) };
  };
  waits = new RunWaits({ database: { query } as unknown as Queryable, pollIntervalMs: () => 1 });
  return read;
}

const wait = (target: WaitTarget) => waits.wait(target, WAIT_MS, new AbortController().signal);
const waitForJobs = (jobIds: number[] | null) => wait({ kind: 'request', accountId: 1, jobIds });

test('a check reads an account once for all filters, and wakes a runner for each run that matches its filter', async () => {
  const read = openWaits([
    { job_id: '7', count: '2' },
    { job_id: '8', count: '1' },
  ]);
  const woken: string[] = [];
  const runners = [
    ['of job 9', [9]],
    ['of job 8', [9, 8]],
    ['first of any', null],
    ['of job 7', [7]],
    ['second of job 7', [7]],
    ['second of any', null],
  ] as const;
  const done = runners.map(async ([name, jobIds]) => {
    if (await waitForJobs(jobIds && [...jobIds])) woken.push(name);
  });
  await Promise.all([done[1], done[2], done[3]]);
  expect(woken).toEqual(['of job 8', 'first of any', 'of job 7']);
  expect(waits.count).toBe(3);
  expect(read.accountIds[0]).toEqual([1]);
});

test('the end of a run wakes its runner, also while the requests cannot be counted', async () => {
  openWaits(new Error('canceling statement due to statement timeout'));
  const claim = waitForJobs(null);
  expect(await wait({ kind: 'end', accountId: 1, runId: 5 })).toBe(true);
  expect(waits.count).toBe(1);
  waits.close();
  expect(await claim).toBe(false);
});
