import { constants } from 'node:os';
import { join } from 'node:path';
import { bootstrap, prepareUnitTests } from '../../build/bootstrap.mjs';
import { ALL_PROJECTS, compile } from '../../build/compile.mjs';
import { printStaleProofs } from '../../prove/proofs.mjs';
import { run, step } from '../../shared/command.mjs';
import { root } from '../../shared/workspace.mjs';
import { recordCosts } from './costs.mjs';
import { findNeeds } from './needs.mjs';
import { listTests, runJest } from './run-jest.mjs';
import { startTestServers } from './servers.mjs';
import { findSystemPostgres, NO_SYSTEM_POSTGRES, SYSTEM_POSTGRES } from './system-postgres.mjs';
import { makeTestFolder } from './test-folder.mjs';

/** The projects that start the servers and migrate their templates. */
const SERVER_TESTS = ['packages/embedded', 'packages/testing'];
const NO_RESULTS = { isSuccess: false, passed: 0, failed: 0, skipped: 0, files: [] };
const RECORD_COSTS = '--record-costs';

/**
 * Runs the tests of `npm test` or of `npm run test:long` on shared servers, prints the summary and sets the exit code.
 *
 * @param {{ tests: 'short' | 'long', args: string[] }} options `args` are jest's: paths restrict the run to the matching files,
 * without the other checks; `--record-costs` writes the durations of the files to costs.json
 */
export async function runSuite({ tests, args }) {
  const jestArgs = args.filter((arg) => arg !== RECORD_COSTS);
  const isRecording = args.includes(RECORD_COSTS);
  const isComplete = jestArgs.length === 0;
  const stop = watchSignals();
  const failures = [];
  let summary = NO_RESULTS;
  try {
    const withServers = await prepare({ tests, args: jestArgs, isComplete, signal: stop.signal });
    if (isComplete && tests === 'short') failures.push(...(await checkSources(stop.signal)));
    summary = await runTests({ tests, args: jestArgs, isComplete, withServers, signal: stop.signal });
    if (isRecording) recordCosts(summary.files);
  } catch (error) {
    failures.push(error.message);
  }
  if (isComplete && tests === 'short') printStaleProofs();
  finish(summary, failures, stop.stoppedBy());
}

function watchSignals() {
  const controller = new AbortController();
  let stoppedBy = null;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(name, () => {
      stoppedBy ??= name;
      controller.abort();
    });
  }
  return { signal: controller.signal, stoppedBy: () => stoppedBy };
}

/** Builds the modules that the tests use, and returns whether the tests need servers. */
async function prepare({ tests, args, isComplete, signal }) {
  if (isComplete) {
    await bootstrap({ step, signal, onFailure: rethrow });
    return true;
  }
  await prepareUnitTests({ step, signal });
  const needs = findNeeds(await listTests(args, { tests, signal }));
  if (needs.build) await bootstrap({ step, signal, onFailure: rethrow, withConsole: needs.console });
  else if (needs.servers) await step('building the servers', () => compile(SERVER_TESTS, signal));
  return needs.servers;
}

async function runTests({ tests, args, isComplete, withServers, signal }) {
  const { folder, environment, remove } = await makeTestFolder('test');
  let servers = null;
  let systemPostgres = { environment: {}, describe: () => 'run only by a complete npm test' };
  let results = NO_RESULTS;
  try {
    if (withServers)
      servers = await startTestServers({ folder, runId: `${process.pid}x${Date.now().toString(36)}` });
    if (isComplete && tests === 'short') systemPostgres = await openSystemPostgres(servers);
    const serverEnvironment = { ...servers?.environment, ...systemPostgres.environment };
    results = await runJest({
      environment: { ...environment, ...serverEnvironment },
      folder,
      signal,
      tests,
      args,
    });
    return results;
  } finally {
    await servers?.close();
    await remove();
    if (servers !== null) printCoverage(servers, systemPostgres.describe(results));
  }
}

function printCoverage({ backends, browser, poolers }, systemPostgres) {
  process.stdout.write(`\nqueue back ends covered: ${backends}\n`);
  process.stdout.write(`browser tests: ${browser}\n`);
  process.stdout.write(`tests on the system's PostgreSQL: ${systemPostgres}\n`);
  process.stdout.write(`pooler tests: ${poolers}\n`);
}

/** Starts the system's PostgreSQL. `environment` is empty if there is none, or if TEST_DATABASE_URL replaces every server. */
async function openSystemPostgres(servers) {
  const skipped = (reason) => ({ environment: {}, describe: () => `skipped, because ${reason}` });
  if (process.env.TEST_DATABASE_URL) return skipped('TEST_DATABASE_URL is set');
  const found = findSystemPostgres();
  if (found === null) return skipped(NO_SYSTEM_POSTGRES);
  const url = await servers.openSystemPostgres(found);
  const jit = found.hasJit ? 'which has JIT' : 'which has no JIT';
  return {
    environment: { TEST_SYSTEM_POSTGRES_URL: url },
    describe({ files }) {
      const passed = files
        .filter(({ project }) => project === SYSTEM_POSTGRES)
        .reduce((sum, file) => sum + file.passed, 0);
      return `${passed} passed on ${found.version}, ${jit}`;
    },
  };
}

/** Returns the findings of the linter, the type check and knip. Findings fail the run, but the tests run anyway. */
async function checkSources(signal) {
  const failures = [];
  const check = async (title, work) => {
    if (signal.aborted) return;
    await step(title, work).catch((error) => failures.push(error.message));
  };
  const program = (name, path, ...args) =>
    run(process.execPath, [join(root, 'node_modules', path), ...args], { cwd: root, signal, name });
  await check('linting', () => program('biome check .', '@biomejs/biome/bin/biome', 'check', '.'));
  await check('checking types', () => compile([ALL_PROJECTS], signal));
  await check('looking for unused code', () => program('knip', 'knip/bin/knip.js', '--no-progress'));
  return failures;
}

function finish({ isSuccess, passed, failed, skipped }, failures, stoppedBy) {
  if (stoppedBy !== null) process.stdout.write(`stopped by ${stoppedBy}\n`);
  else for (const failure of failures) process.stdout.write(`\n${failure}\n\n`);
  process.stdout.write(`tests: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  const isGood = isSuccess && failures.length === 0 && failed === 0 && passed > 0;
  process.exitCode = stoppedBy !== null ? 128 + constants.signals[stoppedBy] : isGood ? 0 : 1;
}

function rethrow(error) {
  throw error;
}
