// Selects the Node that runs the benchmark: that of the images, from npm, whichever Node runs npm.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fetchNode, tested } from '../prove/matrix-parts.mjs';
import { isHelp, requireChoice } from '../shared/arguments.mjs';
import { root } from '../shared/workspace.mjs';

/** The version in the Dockerfile. */
export const imageNodeVersion = /^FROM node:([\d.]+)-/m.exec(
  readFileSync(join(root, 'Dockerfile'), 'utf8'),
)[1];

/** Returns the path of the oldest supported Node. */
export function fetchOldestNode(signal) {
  return fetch(Object.values(tested.node)[0], signal);
}

/**
 * Does the work in this process if it runs on the Node that `--node` names, or on that of the images. Otherwise it runs the same
 * command on that Node, and exits with the same code.
 *
 * @param {() => Promise<void>} work
 */
export async function runOnBenchNode(work) {
  const args = process.argv.slice(2);
  const { node } = parseArgs({ args, strict: false, options: { node: { type: 'string' } } }).values;
  if (node !== undefined) requireChoice('--node', node, Object.keys(tested.node));
  const version = node === undefined ? imageNodeVersion : tested.node[node];
  if (args.some(isHelp) || process.versions.node === version) await work();
  else process.exitCode = await rerunWith(await fetch(version));
}

function fetch(version, signal) {
  const cache = join(root, 'node_modules', '.cache', 'bench');
  mkdirSync(cache, { recursive: true });
  return fetchNode(version, cache, signal);
}

/** Resolves with the exit code. The child stops in order when this process gets a signal or ends. */
function rerunWith(program) {
  const child = spawn(program, process.argv.slice(1), { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => child.kill(name));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
