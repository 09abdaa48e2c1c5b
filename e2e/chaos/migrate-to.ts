import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { World } from './world.ts';

const THIS_CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs the migrate program of a release, as its job does before a rollout; that of this checkout when `checkout` is omitted. */
export async function migrateTo({ servers }: World, checkout = THIS_CHECKOUT): Promise<void> {
  const program = join(checkout, 'services', 'migrate', 'dist', 'main.js');
  await promisify(execFile)(process.execPath, [program], {
    env: { DATABASE_URL: servers.databaseUrl, QUEUE_URL: servers.queueUrl },
  });
}
