import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { createTestDatabase, createTestQueueUrl, queueBackends } from '@runhook/testing';
import { readStages, resolveStage } from '../../scripts/src/image/dockerfile.ts';
import { findIsolation } from '../../scripts/src/image/isolated-process.ts';
import { proveImages } from '../../scripts/src/image/prove-images.ts';
import { checkout } from './manifests.ts';

const DEPLOY_TIMEOUT_MS = 120_000;
/** One service stands for all of them here. */
const NAME = 'dispatcher';

/** As the Dockerfile does it, from the build that is here: `npm run prove-image` builds from nothing. */
function deploy(name: string, folder: string): void {
  const pnpm = /RUN npm install --global (pnpm@\S+)/.exec(dockerfile)?.[1] ?? 'pnpm';
  const run = (file: string, args: string[]) => {
    const { status, stdout, stderr } = spawnSync(file, args, {
      cwd: checkout,
      encoding: 'utf8',
      env: { ...process.env, CI: 'true', NODE_OPTIONS: '' },
    });
    if (status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${status}\n${stdout}\n${stderr}`);
  };
  const filter = ['--filter', `@runhook/${name}`];
  run('npx', ['--yes', pnpm, ...filter, 'deploy', '--prod', '--ignore-scripts', '--prefer-offline', folder]);
  run(process.execPath, ['scripts/prune-image.mjs', folder]);
}

const dockerfile = readFileSync(join(checkout, 'Dockerfile'), 'utf8');

test(
  'a service runs from its own files alone, unprivileged, without writing, and stops on SIGTERM',
  async () => {
    const workFolder = await mkdtemp(join(tmpdir(), 'runhook-image-'));
    chmodSync(workFolder, 0o755);
    const database = await createTestDatabase();
    try {
      const folder = join(workFolder, NAME);
      deploy(NAME, folder);
      const backend = queueBackends().at(-1) ?? { name: 'PostgreSQL' };
      const isolation = findIsolation();
      const said: string[] = [];
      await proveImages([{ name: NAME, folder, stage: resolveStage(readStages(dockerfile), NAME) }], {
        isolation,
        node: process.execPath,
        databaseUrl: database.url,
        queueUrl: await createTestQueueUrl(backend, database.url),
        say: (line) => said.push(line),
      });
      process.stderr.write(
        `\nthe image of ${NAME}, as ${isolation.description}; npm run prove-image executes the whole Dockerfile\n`,
      );
      for (const line of said) process.stderr.write(`  ${line}\n`);
      expect(said.join('\n')).toContain('dispatcher: ready');
    } finally {
      await database.drop();
      await rm(workFolder, { recursive: true, force: true });
    }
  },
  DEPLOY_TIMEOUT_MS,
);
