import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { checkout, findRenderer, type Manifest } from './manifests.ts';
import { findVariable, readVariables } from './read-variables.ts';

/** Matches variables of node, of other images, and of the trace SDK, which reads its own. */
const NOT_OURS = /^(AWS_\w+|NODE_\w+|POSTGRES_\w+|OTEL_\w+)$/;

const documented = readFileSync(join(checkout, 'docs', 'deployment.md'), 'utf8');
/** Variables that the manifests leave at their defaults, from the table in the documentation. */
const undocumented = new Set(
  [...(documented.split('## Left to their defaults')[1] ?? '').matchAll(/^\| `([A-Z_]+)`/gm)].map(
    ([, name]) => name,
  ),
);

/** Fails if a variable that the service reads is missing, or one that it does not read is set. */
function expectCompleteVariables(
  service: string,
  present: readonly string[],
  shared: readonly string[] = [],
) {
  const variableNames = readVariables[service] ?? new Set();
  const set = new Set([...present, ...shared].map((name) => findVariable(name, variableNames)));
  const missing = [...variableNames].filter((name) => !set.has(name) && !undocumented.has(name));
  const unusedNames = present.filter(
    (name) => !variableNames.has(findVariable(name, variableNames)) && !NOT_OURS.test(name),
  );
  expect({ service, missing, unusedNames }).toEqual({ service, missing: [], unusedNames: [] });
}

test('the variables of each service are recorded while its settings are read', () => {
  for (const variableNames of Object.values(readVariables))
    expect([...variableNames]).toContain('DATABASE_URL');
  expect([...(readVariables.dispatcher ?? [])]).toContain('RETRY_BASE_DELAY_MS');
  expect(readVariables.migrate?.has('PORT')).toBe(false);
});

test('docker-compose.yml sets all variables of each service but those left to their defaults', () => {
  const { services } = parse(readFileSync(join(checkout, 'docker-compose.yml'), 'utf8'), { merge: true });
  for (const service of Object.keys(readVariables))
    expectCompleteVariables(service, Object.keys(services[service].environment));
});

const renderer = findRenderer();
const testRendered = renderer === null ? test.skip : test;

testRendered('the manifests set all variables of the services but those left to their defaults', () => {
  const manifests = renderer?.render('production') ?? [];
  const shared = manifests
    .filter(({ kind }) => kind === 'ConfigMap')
    .flatMap(({ data }) => Object.keys(data));
  for (const service of Object.keys(readVariables)) {
    const workload = manifests.find(
      ({ kind, metadata }) => metadata.name === service && (kind === 'Deployment' || kind === 'Job'),
    ) as Manifest;
    const [container] = workload.spec.template.spec.containers;
    expectCompleteVariables(
      service,
      container.env.map(({ name }: { name: string }) => name),
      shared,
    );
  }
  const read = new Set(Object.values(readVariables).flatMap((names) => [...names]));
  expect(shared.filter((name) => !read.has(name))).toEqual([]);
});

test('every variable that docs/deployment.md lists as left to its default is read by a service', () => {
  const read = new Set(Object.values(readVariables).flatMap((names) => [...names]));
  expect(undocumented.size).toBeGreaterThan(0);
  expect([...undocumented].filter((name) => !read.has(name as string))).toEqual([]);
});

test('every variable that a service reads is in docs/configuration.md', () => {
  const text = readFileSync(join(checkout, 'docs', 'configuration.md'), 'utf8');
  const read = new Set(Object.values(readVariables).flatMap((names) => [...names]));
  expect([...read].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});
