import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobView } from '@runhook/database';

/** Writes the file by which `examples/job-runner` knows a job, and gives its path. */
export function writeJobFile(folder: string, job: JobView): string {
  const file = join(folder, `${job.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.json`);
  const content = {
    accountId: job.account_id,
    job: { id: job.id, name: job.name },
    project: { id: job.project_id, name: job.project_name },
    environment: { id: job.environment_id, name: job.environment_name },
    engineVersion: process.versions.node,
  };
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
  return file;
}
