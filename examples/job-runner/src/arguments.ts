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

/** Null when they make no sense. */
export function readArguments(args: readonly string[]): Arguments | null {
  const end = args.indexOf('--');
  if (end === -1) return null;
  const [jobFile, ...options] = args.slice(0, end);
  const [program, ...rest] = args.slice(end + 1);
  if (jobFile === undefined || program === undefined || options.length % 2 !== 0) return null;

  const read: Arguments = {
    jobFile,
    runId: Date.now(),
    reason: 'Started from the command line',
    command: [program, ...rest],
  };
  for (let index = 0; index < options.length; index += 2) {
    const value = options[index + 1] as string;
    if (options[index] === '--run-id') read.runId = Number(value);
    else if (options[index] === '--reason') read.reason = value;
    else return null;
  }
  return Number.isSafeInteger(read.runId) && read.runId > 0 ? read : null;
}
