import { parseArgs } from 'node:util';

export const USAGE = `usage: QUEUE_URL=… job-runner <job file> [--run-id <integer>] [--reason <text>] -- <command> [arguments…]

Runs the command as a run of the job and publishes job.run.started, job.run.errored and job.run.completed.
Exits as the command did.`;

export interface Arguments {
  jobFile: string;
  /** The runner numbers its own runs; any positive integer that this account has not used. */
  runId: number;
  reason: string;
  command: [string, ...string[]];
}

/** Returns null for invalid arguments. Arguments after `--` belong to the command, even if they look like options. */
export function readArguments(args: readonly string[]): Arguments | null {
  const end = args.indexOf('--');
  const [program, ...rest] = args.slice(end + 1);
  const ownArguments = parseOptions(args.slice(0, Math.max(end, 0)));
  if (end === -1 || ownArguments === null || program === undefined) return null;
  const [jobFile, ...extraArguments] = ownArguments.positionals;
  const { 'run-id': runId = String(Date.now()), reason = 'Started from the command line' } =
    ownArguments.values;
  const isRunId = Number.isSafeInteger(Number(runId)) && Number(runId) > 0;
  if (jobFile === undefined || extraArguments.length > 0 || !isRunId) return null;
  return { jobFile, runId: Number(runId), reason, command: [program, ...rest] };
}

/** Returns null if an option is unknown or lacks its value. */
function parseOptions(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: { 'run-id': { type: 'string' }, reason: { type: 'string' } },
    });
  } catch {
    return null;
  }
}
