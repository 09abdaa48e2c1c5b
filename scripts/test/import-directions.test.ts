import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const biome = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome');

const FORBIDDEN: Record<string, string> = {
  'packages/contract/src/a.ts': '@runhook/database',
  'packages/runtime/src/a.ts': '@runhook/contract',
  'packages/embedded/src/a.ts': '@runhook/contract',
  'packages/egress/src/a.ts': '@runhook/runtime',
  'packages/queue/src/a.ts': '@runhook/database',
  'packages/publisher/src/a.ts': '@runhook/runtime',
  'packages/receiver/src/a.ts': '@runhook/contract',
  'packages/receiver/src/b.ts': 'joi',
  'packages/client/src/a.ts': '@runhook/contract',
  'packages/cli/src/a.ts': '@runhook/database',
  'packages/doctor/src/a.ts': '@runhook/client',
  'packages/artifacts/src/a.ts': '@runhook/queue',
  'packages/database/src/a.ts': '@runhook/queue',
  'packages/database/src/b.ts': '../../../services/management/src/app.ts',
  'services/management/src/a.ts': '@runhook/dispatcher',
  'services/dispatcher/src/a.ts': '@runhook/testing',
  'services/dispatcher/src/policy/a.ts': 'bullmq',
  'services/management/src/runs/transitions.ts': '@prisma/client',
  'services/management/src/deliveries/a.ts': '../subscriptions/statements.ts',
  'services/management/src/http/openapi/a.ts': '../../runs/statements.ts',
  'services/management/src/runs/report-statements.ts': '../jobs/routes.ts',
  'services/management/src/runs/statements.ts': 'pg',
  'services/management/src/jobs/a.ts': '@prisma/client',
  'services/management/src/sessions/a.ts': 'runStatement of @runhook/database',
};

const ALLOWED: Record<string, string> = {
  'packages/receiver/src/c.ts': '@runhook/contract/signatures',
  'packages/cli/src/b.ts': '@runhook/contract/check-signature',
  'packages/doctor/src/b.ts': '@runhook/queue/inspect',
  'packages/artifacts/src/b.ts': '@runhook/database',
  'packages/database/src/c.ts': '@runhook/contract',
  'packages/testing/src/a.ts': '@runhook/database',
  'services/dispatcher/src/b.ts': '@runhook/egress',
  'services/management/src/deliveries/b.ts': '../subscriptions/require-subscription.ts',
  'services/management/src/http/openapi/b.ts': '../../runs/openapi.ts',
  'services/management/src/jobs/b.ts': '../http/endpoint.ts',
  'services/management/src/sessions/b.ts': 'hashCredential of @runhook/database',
  'services/management/src/identity/find-principal.ts': 'queryRows of @runhook/database',
};

/**
 * Runs the linter of `npm test` on a tree of files with one import each, of a module or of a name of it. Returns the files with a
 * rejected import.
 */
async function findRejected(imports: Record<string, string>): Promise<string[]> {
  const tree = await mkdtemp(join(tmpdir(), 'runhook-directions-'));
  try {
    const configuration = JSON.parse(await readFile(join(root, 'biome.json'), 'utf8'));
    await writeFile(join(tree, 'biome.json'), JSON.stringify({ ...configuration, vcs: { enabled: false } }));
    for (const [path, imported] of Object.entries(imports)) {
      await mkdir(dirname(join(tree, path)), { recursive: true });
      const [module, name = 'x'] = imported.split(' of ').reverse();
      await writeFile(
        join(tree, path),
        `import { ${name} } from '${module}';\n\nexport const y = ${name};\n`,
      );
    }
    const { stdout } = spawnSync(process.execPath, [biome, 'lint', '--reporter=github', '.'], {
      cwd: tree,
      encoding: 'utf8',
    });
    const lines = stdout.split('\n').filter((line) => line.includes('noRestrictedImports'));
    return Object.keys(imports).filter((path) => lines.some((line) => line.includes(path)));
  } finally {
    await rm(tree, { recursive: true, force: true });
  }
}

test('the linter rejects imports that the layout of docs/architecture.md does not permit', async () => {
  expect(await findRejected(FORBIDDEN)).toEqual(Object.keys(FORBIDDEN));
});

test('the linter accepts imports that the layout of docs/architecture.md permits', async () => {
  expect(await findRejected(ALLOWED)).toEqual([]);
});
