import type { Schemas } from '@runhook/client';
import { isFinalRunStatus, runStatusOfCode } from '@runhook/contract/run-statuses';
import { queryOptions } from '@tanstack/react-query';
import { consoleUrl } from '../served-page.ts';
import { activityKey, pollRuns } from './activity.ts';
import { request, requestText } from './request.ts';

const STEPS = '/api/v2/accounts/{account_id}/runs/{run_id}/steps';

export type RunStep = Schemas['RunStep'];
/** Name of a log in the API. */
export type RunStepLog = 'logs' | 'debug_logs';

/** The steps of a run, without their logs. */
export function runStepsQuery(accountId: number, runId: number) {
  return queryOptions({
    queryKey: [...activityKey(accountId), 'run', runId, 'steps'],
    queryFn: async ({ signal }) =>
      (
        await request('get', STEPS, {
          path: { account_id: accountId, run_id: runId },
          query: { logs: false },
          signal,
        })
      ).data,
    refetchInterval: pollRuns,
  });
}

export function isStepInProgress({ status }: RunStep): boolean {
  return !isFinalRunStatus(runStatusOfCode(status));
}

/** The text of a log. Each version of a step has its own entry of the cache. */
export function stepLogQuery(step: RunStep, log: RunStepLog) {
  return queryOptions({
    // Not below the key of the activity: a log is several hundred kilobytes, and changes only with its step.
    queryKey: ['step-log', step.account_id, step.run_id, step.index, step.updated_at, log],
    queryFn: ({ signal }) => requestText(stepLogPath(step, log), signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Address of a log as a file. */
export function stepLogAddress(step: RunStep, log: RunStepLog): string {
  return consoleUrl(stepLogPath(step, log));
}

function stepLogPath({ account_id, run_id, index }: RunStep, log: RunStepLog): string {
  return `api/v2/accounts/${account_id}/runs/${run_id}/steps/${index}/${log}`;
}
