import { spawnSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Clone, makeClone } from './clone.ts';

let clone: Clone;

beforeAll(() => {
  clone = makeClone();
});

afterAll(() => clone.remove());

function checkWords() {
  const args = ['scripts/check.mjs', 'words'];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: clone.folder, encoding: 'utf8' });
  return { status, lines: stderr.split('\n').filter((line) => line !== '') };
}

test('words that the glossary replaces are reported in added lines only, with the line and the replacement', () => {
  expect(checkWords()).toEqual({ status: 0, lines: [] });
  const page = join(clone.folder, 'docs', 'README.md');
  appendFileSync(page, '\nThe receiver is told about it, and `told` is code, as is services/upkeep/x.\n');
  writeFileSync(join(clone.folder, 'new.md'), 'First line.\nWhoever calls it.\n');
  const { status, lines } = checkWords();
  expect(status).toBe(1);
  expect(lines).toEqual([
    expect.stringMatching(/^docs\/README\.md:\d+: "told"; write instead: recorded, /),
    'new.md:2: "Whoever"; write instead: the caller, a user: name the actor',
  ]);
  clone.commit('Add lines');
  expect(checkWords()).toEqual({ status: 0, lines: [] });
});
