import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  name: string;
  dependencies?: Record<string, string>;
}

const listFolders = (parent: string) =>
  readdirSync(join(root, parent), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(root, parent, entry.name, 'package.json')))
    .map(({ name }) => join(parent, name));
const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));

const services = listFolders('services').map(manifestOf);
const ownPackages = new Map(
  listFolders('packages').map((folder) => [manifestOf(folder).name, manifestOf(folder)]),
);

/** Returns the external packages that the services load, also through packages of this repository. */
function runtimeDependencies(): string[] {
  const reachable = new Set<Manifest>(services);
  const others = new Set<string>();
  for (const { dependencies = {} } of reachable) {
    for (const name of Object.keys(dependencies)) {
      const ownDependencies = ownPackages.get(name);
      if (ownDependencies) reachable.add(ownDependencies);
      else others.add(name);
    }
  }
  return [...others].sort();
}

test('docs/security.md lists exactly the packages that the services load, each with purpose, size and substitute', () => {
  const page = readFileSync(join(root, 'docs', 'security.md'), 'utf8');
  const section = page.split('\n## Dependencies\n')[1]?.split('\n## ')[0] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` \| (.+) \| (\d[^|]*) \| (.+) \|$/gm)].map(
    ([, name]) => name,
  );
  expect(rows).toEqual(runtimeDependencies());
});
