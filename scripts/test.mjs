// npm test: everything. node scripts/test.mjs <arguments of jest>: only those tests, on the same servers.
import { constants } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './bootstrap.mjs';
import { run, step } from './command.mjs';
import { runJest } from './run-jest.mjs';
import { findSystemPostgres, NO_SYSTEM_POSTGRES } from './system-postgres.mjs';
import { makeTestFolder } from './test-folder.mjs';
import { startTestServers } from './test-servers.mjs';
import { root } from './workspace.mjs';

/**
 * Tests that `npm test` runs a second time, on the PostgreSQL of the system's packages. Debian's has JIT on by default and is the
 * oldest version that is supported. They cover the plans of the statements and the story of the services.
 */
const ON_SYSTEM_POSTGRES = ['services/dispatcher/test/record/plans', 'e2e/story\\.test'];

const args = process.argv.slice(2);
const stopping = new AbortController();
let stoppedBy = null;
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(name, () => {
    if (stoppedBy === null) stoppedBy = name;
    stopping.abort();
  });
}

const failures = [];
let tests = { isSuccess: false, passed: 0, failed: 0, skipped: 0 };
let systemPostgres = 'only in a run of all tests';
try {
  await bootstrap({ step, signal: stopping.signal, onFailure: rethrow });
  if (args.length === 0) {
    await check('linting', 'biome check .', ['@biomejs', 'biome', 'bin', 'biome'], ['check', '.']);
    await check(
      'checking the types of the tests',
      'tsc',
      ['typescript', 'bin', 'tsc'],
      ['-p', 'tsconfig.test.json'],
    );
    await check('looking for what nobody uses', 'knip', ['knip', 'bin', 'knip.js'], ['--no-progress']);
  }
  tests = await runTests();
} catch (error) {
  failures.push(error.message);
}
finish();

async function runTests() {
  const { folder, environment, remove } = await makeTestFolder('test');
  let servers = null;
  try {
    if (stopping.signal.aborted) return tests;
    servers = await startTestServers({ folder, runId: `${process.pid}x${Date.now().toString(36)}` });
    const jestOptions = {
      environment: { ...environment, ...servers.environment },
      folder,
      signal: stopping.signal,
    };
    const ofAll = await runJest({ ...jestOptions, args });
    if (args.length > 0 || stopping.signal.aborted) return ofAll;
    return sumOf(ofAll, await runOnSystemPostgres(servers, jestOptions));
  } finally {
    await servers?.close();
    await remove();
    if (servers !== null) {
      process.stdout.write(`\nqueue back ends covered: ${servers.backends}\n`);
      process.stdout.write(`browser tests: ${servers.browser}\n`);
      process.stdout.write(`tests on the system's PostgreSQL: ${systemPostgres}\n`);
      process.stdout.write(`pooler tests: ${servers.poolers}\n`);
    }
  }
}

/** Returns null where the system has no PostgreSQL, and TEST_DATABASE_URL takes the place of every server. */
async function runOnSystemPostgres(servers, options) {
  if (process.env.TEST_DATABASE_URL) {
    systemPostgres = 'skipped, because TEST_DATABASE_URL is set';
    return null;
  }
  const found = findSystemPostgres();
  if (found === null) {
    systemPostgres = `skipped, because ${NO_SYSTEM_POSTGRES}`;
    return null;
  }
  const url = await servers.openSystemPostgres(found);
  const environment = { ...options.environment, TEST_POSTGRES_URL: url };
  const results = await runJest({ ...options, environment, args: ON_SYSTEM_POSTGRES });
  systemPostgres = `${results.passed} passed on ${found.version}, ${found.hasJit ? 'which has JIT on' : 'which is without JIT'}`;
  return results;
}

function sumOf(one, other) {
  if (other === null) return one;
  return {
    isSuccess: one.isSuccess && other.isSuccess,
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
  };
}

/** A finding fails the run, but does not keep the tests from running. */
async function check(title, name, program, programArgs) {
  if (stopping.signal.aborted) return;
  const file = join(root, 'node_modules', ...program);
  try {
    await step(title, () =>
      run(process.execPath, [file, ...programArgs], { cwd: root, signal: stopping.signal, name }),
    );
  } catch (error) {
    failures.push(error.message);
  }
}

function finish() {
  const { isSuccess, passed, failed, skipped } = tests;
  if (stoppedBy !== null) process.stdout.write(`stopped by ${stoppedBy}\n`);
  else for (const failure of failures) process.stdout.write(`\n${failure}\n\n`);
  process.stdout.write(`tests: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  const isGood = isSuccess && failures.length === 0 && failed === 0 && passed > 0;
  process.exitCode = stoppedBy !== null ? 128 + constants.signals[stoppedBy] : isGood ? 0 : 1;
}

function rethrow(error) {
  throw error;
}
