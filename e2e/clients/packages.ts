import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/clients', import.meta.url));

/** An unmodified client, with the program of this folder that calls it. */
export interface ClientPackages {
  name: string;
  program: string;
  /** Pinned requirements, as pip takes them. */
  requirements: readonly string[];
  /** The oldest minor version of Python 3 that the packages accept, and the newest. */
  python: readonly [number, number];
}

/**
 * dbt-core is limited to 1.10, because later releases download a part of themselves from elsewhere than PyPI; pyarrow of dbtc,
 * because later ones do not accept the pandas that dbtc pins.
 */
export const CLIENTS: readonly ClientPackages[] = JSON.parse(
  readFileSync(new URL('clients.json', import.meta.url), 'utf8'),
);

/** Returns the program of a suitable Python, or the reason why there is none. */
export function findPython({ name, python: [oldest, newest] }: ClientPackages): string | { reason: string } {
  const minors = Array.from({ length: newest - oldest + 1 }, (_, index) => newest - index);
  for (const program of ['python3', ...minors.map((minor) => `python3.${minor}`)]) {
    const { stdout, status } = spawnSync(program, ['-c', 'import sys; print(sys.version_info[1])'], {
      encoding: 'utf8',
    });
    if (status === 0 && minors.includes(Number(stdout))) return program;
  }
  return { reason: `no Python 3.${oldest} to 3.${newest} is on the path for ${name}` };
}

/**
 * Installs the packages into a separate environment in the cache of the checkout, if they are not there yet.
 * @returns the Python of the environment
 */
export async function installPackages(python: string, { requirements }: ClientPackages): Promise<string> {
  const version = spawnSync(python, ['--version'], { encoding: 'utf8' }).stdout.trim();
  const key = createHash('sha256')
    .update(JSON.stringify([version, requirements]))
    .digest('hex')
    .slice(0, 16);
  const folder = join(CACHE, key);
  const marker = join(folder, 'installed');
  const program = join(folder, 'bin', 'python');
  if (existsSync(marker)) return program;
  await rm(folder, { recursive: true, force: true });
  await mkdir(CACHE, { recursive: true });
  await run(python, ['-m', 'venv', folder]);
  await run(program, ['-m', 'pip', 'install', '--quiet', ...requirements], { maxBuffer: 1e8 });
  await writeFile(marker, requirements.join('\n'));
  return program;
}
