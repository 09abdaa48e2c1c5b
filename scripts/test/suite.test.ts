import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const part = async (name: string) => import(String(new URL(`./run/${name}`, import.meta.url)));
const { costEstimate } = (await part('costs.mjs')) as {
  costEstimate(recorded?: Record<string, number>): (file: string) => number;
};
const { workerCount } = (await part('workers.mjs')) as {
  workerCount(machine: { cores: number; memoryBytes: number }): number;
};

const { findNeeds } = (await part('needs.mjs')) as {
  findNeeds(files: string[]): { servers: boolean; build: boolean; console: boolean };
};

const root = fileURLToPath(new URL('../..', import.meta.url));
const GIB = 2 ** 30;

test('the cost of a test file is the recorded duration, or an estimate from its size', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-costs-'));
  try {
    const [small, large] = [join(folder, 'small.test.ts'), join(folder, 'large.test.ts')];
    await writeFile(small, 'x');
    await writeFile(large, 'x'.repeat(10_000));
    const costOf = costEstimate({ 'e2e/story.test.ts': 156 });
    expect(costOf(join(root, 'e2e', 'story.test.ts'))).toBe(156);
    expect(costOf(large)).toBeGreaterThan(costOf(small));
    expect(costOf(large)).toBeLessThan(60);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test.each([
  { cores: 2, gib: 16, workers: 3 },
  { cores: 4, gib: 16, workers: 6 },
  { cores: 64, gib: 256, workers: 8 },
  { cores: 8, gib: 4, workers: 2 },
  { cores: 1, gib: 0.5, workers: 1 },
])('a machine of $cores cores and $gib GiB runs the tests in $workers workers', ({ cores, gib, workers }) => {
  expect(workerCount({ cores, memoryBytes: gib * GIB })).toBe(workers);
});

test.each([
  { path: 'packages/contract/test/ids.test.ts', needs: [] },
  { path: 'packages/database/test/day-partitions.test.ts', needs: ['servers'] },
  { path: 'services/management/test/runs/runs-list.test.ts', needs: ['servers'] },
  { path: 'packages/runtime/test/signals.test.ts', needs: ['build'] },
  { path: 'e2e/redelivery.test.ts', needs: ['servers', 'build'] },
  { path: 'e2e/console/story.test.ts', needs: ['servers', 'build', 'console'] },
])('the test file $path needs $needs', ({ path, needs }) => {
  const found = Object.entries(findNeeds([join(root, path)])).filter(([, isNeeded]) => isNeeded);
  expect(found.map(([name]) => name)).toEqual(needs);
});
