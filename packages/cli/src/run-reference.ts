import { RunhookError } from '@runhook/client';
import { printable } from '@runhook/runtime/terminal-text';
import { CliError, UsageError } from './command.ts';

export const RUNS_PATH = '/api/v2/accounts/{account_id}/runs';

export const RUN_ARGUMENT: [string, string] = ['<run>', 'number of the run'];

export function runId(reference: string): number {
  if (/^\d{1,15}$/.test(reference)) return Number(reference);
  throw new UsageError(`${printable(reference)} is not a run: use its number.`);
}

/** Names the missing item, because the service's message does not. */
export function notFound(subject: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof RunhookError && error.status === 404)
      throw new CliError('not_found', `There is no ${printable(subject)}.`);
    throw error;
  };
}
