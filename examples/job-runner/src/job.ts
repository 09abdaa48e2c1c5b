import { readFile } from 'node:fs/promises';

/** A job file: which job of which account this is. Ids are the ones the service gave. */
export interface Job {
  accountId: number;
  job: { id: number; name: string };
  project: { id: number; name: string };
  environment: { id: number; name: string };
  /** Version of whatever runs the job; Node's own when the file names none. */
  engineVersion: string;
}

/** Only what the file must have is asked for here; the publisher checks every field of every event. */
export async function readJob(file: string): Promise<Job> {
  const job = JSON.parse(await readFile(file, 'utf8')) as Partial<Job>;
  for (const field of ['accountId', 'job', 'project', 'environment'] as const) {
    if (job[field] === undefined) throw new Error(`${file} has no "${field}"`);
  }
  return { engineVersion: process.versions.node, ...job } as Job;
}
