import { readFile } from 'node:fs/promises';

/** Content of a job file: the job and its account. The service assigned the ids. */
export interface Job {
  accountId: number;
  job: { id: number; name: string };
  project: { id: number; name: string };
  environment: { id: number; name: string };
  /** Version of the engine that runs the job; default: the version of Node. */
  engineVersion: string;
}

/** Checks only that the required fields exist; the publisher validates every field of every event. */
export async function readJob(file: string): Promise<Job> {
  const job = JSON.parse(await readFile(file, 'utf8')) as Partial<Job>;
  for (const field of ['accountId', 'job', 'project', 'environment'] as const) {
    if (job[field] === undefined) throw new Error(`${file} has no "${field}"`);
  }
  return { engineVersion: process.versions.node, ...job } as Job;
}
