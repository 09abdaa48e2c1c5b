import type { Schemas } from '@runhook/client';
import { printable } from '@runhook/runtime/terminal-text';
import { type Command, type Context, option } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions } from './connection.ts';
import { JOB_ARGUMENT, JOB_PATH, jobId, notFound, RUN_ARGUMENT, RUNS_PATH, runId } from './references.ts';

async function writeRun(context: Context, run: Schemas['Run'], what: string): Promise<0> {
  await context.writeResult(
    `Run ${run.id} of "${printable(run.job_name)}" ${what}: ${run.status_humanized}.`,
    run,
  );
  return 0;
}

export const cancelRun: Command<ConnectionOptions> = {
  name: 'cancel',
  summary: 'cancel a run',
  description: 'Cancels a run. Its runner learns of it within a second. A run that has ended is not changed.',
  arguments: [RUN_ARGUMENT],
  options: connectionOptions(),
  examples: ['runs cancel 2482'],
  async run(context, options, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, options);
    const run = await client
      .post(`${RUNS_PATH}/{run_id}/cancel`, { path: { run_id: id } })
      .catch(notFound(`run ${id}`));
    return await writeRun(context, run, 'has ended');
  },
};

export const retryRun: Command<ConnectionOptions> = {
  name: 'retry',
  summary: 'retry a run that failed or was cancelled',
  description: 'Queues a run with the options of one that failed or was cancelled.',
  arguments: [RUN_ARGUMENT],
  options: connectionOptions(),
  examples: ['runs retry 2482'],
  async run(context, options, [reference = '']) {
    const id = runId(reference);
    const client = await connect(context.env, options);
    const run = await client
      .post(`${RUNS_PATH}/{run_id}/retry`, { path: { run_id: id } })
      .catch(notFound(`run ${id}`));
    return await writeRun(context, run, `retries run ${id}`);
  },
};

interface TriggerOptions extends ConnectionOptions {
  cause?: string;
  branch?: string;
  sha?: string;
}

export const runJob: Command<TriggerOptions> = {
  name: 'run',
  summary: 'trigger a run of a job',
  description: 'Queues a run of a job, which a runner executes.',
  arguments: [JOB_ARGUMENT],
  options: [
    option('--cause <text>', 'why the run is triggered'),
    option('--branch <name>', 'the branch to check out'),
    option('--sha <commit>', 'the commit to check out'),
    ...connectionOptions(),
  ],
  examples: ['jobs run 12 --cause "By hand"'],
  async run(context, { cause, branch, sha, ...connection }, [reference = '']) {
    const id = jobId(reference);
    const client = await connect(context.env, connection);
    const body = { cause: cause ?? null, git_branch: branch ?? null, git_sha: sha ?? null };
    const run = await client
      .post(`${JOB_PATH}/run`, { path: { job_id: id }, body })
      .catch(notFound(`job ${id}`));
    return await writeRun(context, run, 'is triggered');
  },
};
