import { readFile } from 'node:fs/promises';

/** A program and its arguments. No shell reads them. */
export type Command = [program: string, ...args: string[]];

/** Work of a job. */
export interface JobCommands {
  /** Commands in their order; a text is split at spaces outside of quotes. */
  steps: (string | Command)[];
  /** Folder of the files to upload after the commands; none when omitted. */
  artifacts?: string;
}

/** Content of the runner's file. */
export interface JobsFile {
  accountId: number;
  /** Version of the engine that executes the jobs; default: the version of Node. */
  engineVersion?: string;
  /** Programs that the steps of a trigger may call. None when omitted: a caller who may trigger runs could otherwise execute any program. */
  programs?: string[];
  /** Commands by the id of the job. */
  jobs: Record<string, JobCommands>;
}

export async function readJobs(file: string): Promise<JobsFile> {
  const jobs = JSON.parse(await readFile(file, 'utf8')) as Partial<JobsFile>;
  if (!Number.isSafeInteger(jobs.accountId)) throw new Error(`${file} has no "accountId"`);
  if (typeof jobs.jobs !== 'object') throw new Error(`${file} has no "jobs"`);
  return jobs as JobsFile;
}

/**
 * Returns the commands of a run: the steps of its trigger if it has any, otherwise those of the file. Throws an error for
 * a step that calls a program which the file does not permit.
 */
export function commandsOf(
  { programs = [] }: JobsFile,
  job: JobCommands,
  triggeredSteps: readonly string[],
): Command[] {
  if (triggeredSteps.length === 0)
    return job.steps.map((step) => (typeof step === 'string' ? splitArguments(step) : step));
  return triggeredSteps.map((step) => {
    const command = splitArguments(step);
    if (!programs.includes(command[0]))
      throw new Error(`This runner may not execute "${command[0]}" for a trigger.`);
    return command;
  });
}

function splitArguments(text: string): Command {
  const parts = Array.from(text.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g), ([part]) =>
    part.replaceAll(/["']/g, ''),
  );
  const [program, ...args] = parts;
  if (program === undefined) throw new Error('A step is empty.');
  return [program, ...args];
}
