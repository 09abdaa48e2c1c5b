import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import {
  type ClaimedRun,
  commandStepName,
  type ReportedRunStep,
  RunnerApiError,
  type RunResult,
} from '@runhook/publisher';
import { type Command, commandsOf, type JobCommands, type JobsFile } from './jobs.ts';
import { runCommand } from './run-command.ts';

/** Executes the commands of a run one after another, until one fails, and uploads its artifacts. */
export async function executeRun(file: JobsFile, run: ClaimedRun): Promise<RunResult> {
  const job = file.jobs[String(run.job.id)];
  if (job === undefined) throw new Error(`This runner has no commands for the job ${run.job.id}.`);
  const startedAt = new Date();
  await run.start({ engineVersion: file.engineVersion ?? process.versions.node, startedAt });
  const commands = commandsOf(file, job, run.executeSteps);
  const failure = await executeSteps(run, commands);
  // Before the end of the run is reported: a client that sees it may ask for the files at once, and only once.
  if (!run.signal.aborted && job.artifacts !== undefined) {
    const rejections = await uploadArtifacts(run, job, startedAt);
    if (rejections.length > 0) await reportRejections(run, commands.length + 1, rejections);
  }
  return failure === null ? { status: 'success' } : { status: 'errored', statusMessage: failure };
}

/** Returns the message of the command that failed; null if all succeeded. */
async function executeSteps(run: ClaimedRun, commands: readonly Command[]): Promise<string | null> {
  const env = environmentOf(run);
  for (const [position, command] of commands.entries()) {
    const step: ReportedRunStep = {
      index: position + 1,
      name: commandStepName(command),
      status: 'Running',
      started_at: new Date().toISOString(),
    };
    await run.reportSteps([step]);
    const { failure, logs } = await runCommand(command, env, run.signal);
    if (run.signal.aborted) return null;
    const status = failure === null ? 'Success' : 'Error';
    const endedSteps: ReportedRunStep[] = [{ ...step, status, finished_at: new Date().toISOString(), logs }];
    if (failure !== null)
      for (let next = position + 1; next < commands.length; next += 1)
        endedSteps.push({
          index: next + 1,
          name: commandStepName(commands[next] as Command),
          status: 'Cancelled',
        });
    await run.reportSteps(endedSteps);
    if (failure !== null) return failure;
  }
  return null;
}

/** Credentials of the runner, which commands must not see. */
const OWN_VARIABLES = ['QUEUE_URL', 'RUNHOOK_TOKEN'];

/** dbt writes each variable with this prefix to the metadata of its artifacts, where readers look for the run. */
const DBT_METADATA_PREFIX = 'DBT_ENV_CUSTOM_ENV_';

function environmentOf(run: ClaimedRun): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of OWN_VARIABLES) delete env[name];
  const metadata = {
    DBT_CLOUD_RUN_ID: run.id,
    DBT_CLOUD_JOB_ID: run.job.id,
    DBT_CLOUD_PROJECT_ID: run.project.id,
    DBT_CLOUD_RUN_REASON: run.trigger.cause ?? '',
  };
  for (const [name, value] of Object.entries(metadata)) env[DBT_METADATA_PREFIX + name] = String(value);
  return env;
}

/**
 * Uploads the files that the run has written, by their paths below the folder. Returns a line for each file that the
 * service rejects.
 */
async function uploadArtifacts(
  run: ClaimedRun,
  { artifacts = '' }: JobCommands,
  since: Date,
): Promise<string[]> {
  const rejections: string[] = [];
  const entries = await readdir(artifacts, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile() || (await stat(file)).mtime < since) continue;
    const path = relative(artifacts, file).split(sep).join('/');
    try {
      await run.uploadArtifact(path, await readFile(file));
    } catch (error) {
      if (!isRejection(error)) throw error;
      rejections.push(`${path}: ${error.message}`);
    }
  }
  return rejections;
}

/** An invalid path, a file that is too large, or a used quota: the run has its result nevertheless. */
function isRejection(error: unknown): error is RunnerApiError {
  return error instanceof RunnerApiError && [400, 409, 413].includes(error.status) && !error.isLeaseLost;
}

/** Reports the files that were not stored as a separate step, unless the quota of steps is used as well. */
async function reportRejections(
  run: ClaimedRun,
  index: number,
  rejections: readonly string[],
): Promise<void> {
  const logs = `These files were not stored:\n${rejections.join('\n')}\n`;
  process.stderr.write(logs);
  const at = new Date().toISOString();
  const step = { index, name: 'Upload artifacts', status: 'Error', started_at: at, finished_at: at, logs };
  await run.reportSteps([step]).catch((error: unknown) => {
    if (!isRejection(error)) throw error;
  });
}
