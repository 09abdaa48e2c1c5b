import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { inspectImage } from '../src/image/image-contents.ts';
import { inTemporaryFolder } from './temporary-folder.ts';

const GOOD = [
  'etc/passwd',
  'app/dist/main.js',
  'app/node_modules/.pnpm/joi@18.3.2/node_modules/joi/src/joi.js',
];
const OURS = 'app/node_modules/.pnpm/@runhook+contract@file+c/node_modules/@runhook/contract';

/** Returns the findings in an image that has these files in addition to the good ones. */
async function findingsIn(files: string[], link?: string): Promise<string[]> {
  let findings: string[] = [];
  await inTemporaryFolder(async (folder) => {
    const write = (path: string) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), 'content');
    };
    write('base/etc/passwd');
    for (const path of [...GOOD, ...files]) write(`root/${path}`);
    if (link !== undefined) symlinkSync(link, join(folder, 'root/app/link'));
    const unwanted = new Set(['jest', '@swc/core', '@runhook/migrate']);
    const image = { base: join(folder, 'base'), folder: '/app', unwanted };
    findings = inspectImage(join(folder, 'root'), image).findings;
  });
  return findings;
}

test('the check of an image finds nothing in one that contains only files that run', async () => {
  expect(await findingsIn([`${OURS}/dist/index.js`, 'run/.containerenv'], 'dist/main.js')).toEqual([]);
});

test.each([
  ['root/.npmrc', 'outside'],
  ['app/.env', 'must not be in an image'],
  ['app/server.key', 'must not be in an image'],
  ['app/src/main.ts', 'is not needed at run time'],
  [`${OURS}/test/a.js`, 'is not needed at run time'],
  [
    'app/node_modules/.pnpm/jest@30.5.2/node_modules/jest/index.js',
    'jest@30.5.2 is not a production dependency',
  ],
  [
    'app/node_modules/.pnpm/@swc+core@1.16.22_x/package.json',
    '@swc+core@1.16.22_x is not a production dependency',
  ],
  ['app/node_modules/.pnpm/@runhook+migrate@file+m/package.json', 'is not a production dependency'],
])('the check of an image reports %s', async (path, finding) => {
  expect(await findingsIn([path])).toEqual([expect.stringContaining(finding)]);
});

test('the check of an image reports a link that leads out of it, or nowhere', async () => {
  for (const target of ['/etc/passwd', 'nowhere'])
    expect(await findingsIn([], target)).toEqual(['link is a link that leads out of the image']);
});
