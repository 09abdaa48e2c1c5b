import { RunhookError } from '@runhook/client';
import { printable } from '@runhook/runtime/terminal-text';
import { CliError, UsageError } from './command.ts';

export const RUNS_PATH = '/api/v2/accounts/{account_id}/runs';

export const JOBS_PATH = '/api/v2/accounts/{account_id}/jobs';
export const JOB_PATH = `${JOBS_PATH}/{job_id}` as const;

export const RUN_ARGUMENT: [string, string] = ['<run>', 'number of the run'];
export const JOB_ARGUMENT: [string, string] = ['<job>', 'number of the job'];

export function runId(reference: string): number {
  if (/^\d{1,15}$/.test(reference)) return Number(reference);
  throw new UsageError(`${printable(reference)} is not a run: use its number.`);
}

export function jobId(reference: string): number {
  if (isId(reference)) return Number(reference);
  throw new UsageError(`${printable(reference)} is not a job: use its number.`);
}

/** Whether the text is an id, and not a name. */
export function isId(text: string): boolean {
  return /^[1-9]\d{0,14}$/.test(text);
}

/** Names the missing item, because the service's message does not. */
export function notFound(subject: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof RunhookError && error.status === 404)
      throw new CliError('not_found', `There is no ${printable(subject)}.`);
    throw error;
  };
}
