import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { readStages, resolveStage } from '../../scripts/src/image/dockerfile.ts';
import { dockerfileFindings } from '../../scripts/src/image/lint-dockerfile.ts';
import { checkout } from './manifests.ts';

const TARGETS = ['management', 'dispatcher', 'migrate'];
const text = readFileSync(join(checkout, 'Dockerfile'), 'utf8');

test('the Dockerfile breaks none of the rules', () => {
  expect(dockerfileFindings(text, TARGETS)).toEqual([]);
});

/** Each change breaks one rule, and the finding says which. */
const BROKEN: [string, RegExp | string, string, string][] = [
  ['a base that moves', 'ARG NODE_VERSION=26.13.0', 'ARG NODE_VERSION=26', 'pin a full version'],
  ['the newest base', /node:\$\{NODE_VERSION\}-trixie-slim/, 'node:latest', 'names no version'],
  ['a base with everything', '-trixie-slim', '-trixie', 'not a slim base'],
  ['root', 'USER 10001:10001', 'USER root', 'USER must be a number'],
  ['root by number', 'USER 10001:10001', 'USER 0:0', 'USER must be a number'],
  [
    'a shell before node',
    /ENTRYPOINT \[.*\]/,
    'ENTRYPOINT node dist/main.js',
    'ENTRYPOINT must be node itself',
  ],
  ['npm before node', 'ENTRYPOINT ["node"', 'ENTRYPOINT ["npm"', 'ENTRYPOINT goes through a shell'],
  ['a shell command', 'CMD ["dist/main.js"]', 'CMD dist/main.js', 'CMD must be in exec form'],
  ['ADD', 'COPY . .', 'ADD . .', 'ADD fetches and unpacks'],
  ['a secret in the history', 'ENV CI=true', 'ENV NPM_TOKEN=x', 'stays in the image'],
  ['an install past the lockfile', 'install --frozen-lockfile', 'install', 'without the lockfile'],
  ['development', 'ENV NODE_ENV=production', 'ENV NODE_ENV=development', 'NODE_ENV must be production'],
  ['a copy of the context', 'COPY --from=build /out/migrate ./', 'COPY . ./', 'copies from outside'],
  ['a command in an image', 'HEALTHCHECK NONE', 'RUN npm install', 'runs a command in the final stage'],
  ['an unknown instruction', 'HEALTHCHECK NONE', 'HEALTHCHEK NONE', 'HEALTHCHEK'],
];

test.each(BROKEN)('%s is found', (_, find, replacement, finding) => {
  const broken = text.replace(find, replacement);
  expect(broken).not.toBe(text);
  let said: string;
  try {
    said = dockerfileFindings(broken, TARGETS).join('\n');
  } catch (error) {
    said = (error as Error).message;
  }
  expect(said).toContain(finding);
});

test('node is process 1 of every image, and the services ask themselves how they are', () => {
  const stages = readStages(text);
  for (const target of TARGETS) {
    const { entrypoint, cmd, user, healthcheck } = resolveStage(stages, target);
    expect([entrypoint[0], cmd, user]).toEqual(['node', ['dist/main.js'], '10001:10001']);
    expect(healthcheck?.slice(0, 2) ?? null).toEqual(target === 'migrate' ? null : ['node', '-e']);
    if (healthcheck !== null) expect(healthcheck[2]).toContain('/healthz');
  }
});
