import { join } from 'node:path';
import { root } from '../shared/workspace.mjs';
import { costEstimate } from '../test/run/costs.mjs';
import { listTests } from '../test/run/run-jest.mjs';
import { runSuite } from '../test/run/suite.mjs';
import { changedFiles } from './changed.mjs';

/** Limits the estimated time of a run: the cheapest files run first, as long as the estimate is within it. */
const BUDGET_SECONDS = 30;
const CODE = /^(?:packages|services)\/[^/]+\/|^(?:scripts|bench)\//;

/** Runs the unit tests that depend on changed files of the same package. */
export async function testChanged() {
  const changed = changedFiles().filter((file) => CODE.test(file) && /\.(ts|tsx|mjs)$/.test(file));
  const packages = new Set(changed.map((file) => CODE.exec(file)[0]));
  const related = changed.length === 0 ? [] : await listTests(['--findRelatedTests', ...changed]);
  const files = related.filter((file) => [...packages].some((folder) => file.startsWith(join(root, folder))));
  const { chosen, skipped } = withinBudget(files);
  if (skipped > 0) process.stdout.write(`tests: ${skipped} slower related files run in npm test only\n`);
  if (chosen.length === 0) process.stdout.write('tests: no test is related to the change\n');
  else await runSuite({ tests: 'short', args: ['--runTestsByPath', ...chosen] });
}

function withinBudget(files) {
  const costOf = costEstimate();
  let seconds = 0;
  const byCost = files
    .map((file) => ({ file, cost: costOf(file) }))
    .sort((one, other) => one.cost - other.cost);
  const chosen = byCost.filter(({ cost }) => {
    seconds += cost;
    return seconds <= BUDGET_SECONDS;
  });
  return { chosen: chosen.map(({ file }) => file), skipped: files.length - chosen.length };
}
