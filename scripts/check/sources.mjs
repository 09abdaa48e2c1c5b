import { join } from 'node:path';
import { prepareSources } from '../build/bootstrap.mjs';
import { run, step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';

const BIOME = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
const KNIP = join(root, 'node_modules', 'knip', 'bin', 'knip.js');

async function report(title, program, args) {
  try {
    await prepareSources();
    await step(title, () => run(process.execPath, [program, ...args], { cwd: root, name: title }));
  } catch (error) {
    process.stderr.write(`\n${error.message}\n`);
    process.exitCode = 1;
  }
}

/** @param {string[]} paths Biome skips files of unknown types */
export function lint(paths) {
  const options = ['--files-ignore-unknown=true', '--no-errors-on-unmatched'];
  return report('linting', BIOME, ['check', ...options, ...paths]);
}

export function format() {
  return report('formatting', BIOME, ['check', '--write', '.']);
}

export function findUnused() {
  return report('looking for unused code', KNIP, ['--no-progress']);
}
