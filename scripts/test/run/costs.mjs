import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { root } from '../../shared/workspace.mjs';

const COSTS_FILE = join(root, 'scripts', 'test', 'run', 'costs.json');
/** Duration from which a test file is recorded; the order of shorter ones does not matter. */
const RECORDED_FROM_SECONDS = 5;
/** Bytes of a test file without a record for each second of its estimate: the median of the recorded files. */
const BYTES_PER_SECOND = 2_000;

const relativePath = (file) => relative(root, file).replaceAll(sep, '/');
const read = () => (existsSync(COSTS_FILE) ? JSON.parse(readFileSync(COSTS_FILE, 'utf8')) : {});

/**
 * Returns a function that estimates how many seconds a test file takes: the recorded duration, or else one that follows from its
 * size, so that a new or renamed file has a reasonable position without a record.
 *
 * @returns {(file: string) => number}
 */
export function costEstimate(recorded = read()) {
  return (file) => recorded[relativePath(file)] ?? statSync(file).size / BYTES_PER_SECOND;
}

/**
 * Writes the durations of a run to the committed record. Files that did not run keep theirs; those that no longer exist lose it.
 *
 * @param {{ file: string, seconds: number }[]} durations
 */
export function recordCosts(durations) {
  const costs = { ...read() };
  for (const { file, seconds } of durations) costs[relativePath(file)] = Math.round(seconds);
  const slow = Object.entries(costs)
    .filter(([path, seconds]) => seconds >= RECORDED_FROM_SECONDS && existsSync(join(root, path)))
    .sort(([, one], [, other]) => other - one);
  writeFileSync(COSTS_FILE, `${JSON.stringify(Object.fromEntries(slow), null, 2)}\n`);
}
