// npm run prove -- citus: runs tests on a record that Citus distributes over a coordinator and two workers on loopback.
import { access, chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from '../build/bootstrap.mjs';
import { readArguments, rejectArguments, usage } from '../shared/arguments.mjs';
import { runJest } from '../test/run/run-jest.mjs';
import { POSTGRES_SETTINGS, startTestServers } from '../test/run/servers.mjs';
import { recordTests } from './proofs.mjs';

/** The tests of the record: the statements of both services, and the story through their interfaces. */
const CORE_TESTS = [
  'packages/database/test/(day-partitions|default-partition)',
  'services/dispatcher/test/',
  'services/management/test/(artifacts|deliveries|feed|runs|subscriptions|jobs|identity|audit)/',
  'services/management/test/http/idempotency',
  'e2e/(story|story-essentials|redelivery|rotation)\\.test',
];
/** Files of {@link CORE_TESTS} on a subject that Citus handles differently, with the reason. */
const SKIPPED_FILES = {
  'services/dispatcher/test/pages': 'drains six hundred lanes within a limit; Citus drains ten per second',
  'services/dispatcher/test/record/plans': 'reads the plans of one server',
  'services/management/test/deliveries/long-log': 'reads the plans of one server',
  'services/management/test/deliveries/delivery-days':
    'creates 40 days in one transaction, in which Citus returns no size of a table',
  'services/management/test/runs/report-query-plans': 'reads the plans of one server',
  'services/dispatcher/test/telemetry/record-writes': 'creates a role, which the workers would need, too',
  'spread-log\\.test': 'divides the days of plain PostgreSQL, which Citus does itself',
  'services/dispatcher/test/faults': 'removes a table or a column, which the coordinator prevents',
  'services/dispatcher/test/shards': 'asserts a rate that depends on the log; the story measures it',
};
const SKIPPED_TESTS = {
  'a row that waits for the default partition while its day is created is rejected temporarily':
    'it waits on the coordinator, and is inserted into the partition of its day',
  'an account whose deferred deliveries cannot be changed does not stop the expiry of those of another account':
    'needs a trigger on a distributed table',
  'is completed although its first page fills every lane of its account':
    'needs a trigger on a distributed table',
  'a delivery that is deferred after its subscription was reactivated is sent by the run of the lane that found the subscription inactive':
    'needs a trigger on a distributed table',
  'a long read of one day does not delay the creation of other days':
    'Citus locks all days for a statement that reads one',
  'statistics read only the days of the requested hours and of the 24 hours before them':
    'the statistics of the coordinator have no scans of shards',
};
/** Number of shards: small, because each shard is a table for each day of the log, in the database of each test. */
const SHARDS = '4';

const USAGE = usage({
  call: 'npm run prove -- citus --bin <folder> [--only <part>]',
  purpose: 'runs the tests of the log and a ledger under load on Citus; a proof (docs/proofs.md)',
  duration: '20 minutes; each test file is printed at once',
  prerequisites: 'a PostgreSQL 15 or newer with the extension citus 13 or newer (docs/contributing.md#citus)',
  details: `--bin   the folder of its programs (postgres, initdb)
--only  core, story, or a pattern of test files`,
});

const { values } = readArguments(USAGE, { options: { bin: { type: 'string' }, only: { type: 'string' } } });
const isPattern = ![undefined, 'core', 'story'].includes(values.only);
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

const bin = values.bin ?? '';
if (bin === '' || !(await exists(join(bin, 'postgres'))))
  rejectArguments(
    `--bin ${bin === '' ? 'is missing' : `is ${bin}, which contains no postgres`}\n\nusage: ${USAGE}`,
  );
await bootstrap({ signal: stopping.signal });
const { startCitusCluster } = await import('../../packages/testing/dist/index.js');
const folder = await mkdtemp(join(tmpdir(), 'runhook-citus-'));
// Other accounts may traverse the folder, because PostgreSQL does not run as root.
await chmod(folder, 0o711);
const parts = [];
try {
  if (values.only !== 'story') parts.push(['core', await runCoreTests(values.only)]);
  if (values.only === undefined || values.only === 'story') parts.push(['story', await runStory()]);
  for (const [name, { passed, failed, skipped }] of parts)
    process.stdout.write(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  const isGood = parts.every(([, { isSuccess }]) => isSuccess);
  process.exitCode = isGood && !stopping.signal.aborted ? 0 : 1;
  if (isPattern) process.stdout.write('docs/proofs.md is not updated by a run of selected tests\n');
  else if (!stopping.signal.aborted)
    for (const [name, results] of parts) recordTests(`citus ${name}`, results);
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Runs the existing tests, each with a distributed database. */
async function runCoreTests(only) {
  const cluster = await startCitusCluster(bin, folder, {
    ...POSTGRES_SETTINGS,
    max_connections: '600',
    'citus.shard_count': SHARDS,
  });
  const [coordinator, ...workers] = cluster.urls;
  process.env.TEST_DATABASE_URL = coordinator;
  process.env.TEST_WORKER_URLS = workers.join();
  let servers = null;
  try {
    servers = await startTestServers({ folder, runId: `${process.pid}` });
    const { signal } = stopping;
    const isCore = only === undefined || only === 'core';
    const otherTests = `^(?!.*(${Object.keys(SKIPPED_TESTS).join('|')})$)`;
    const skipOptions = [
      '--testNamePattern',
      otherTests,
      '--testPathIgnorePatterns',
      ...Object.keys(SKIPPED_FILES),
    ];
    const args = isCore ? [...CORE_TESTS, ...skipOptions] : [only];
    if (isCore)
      for (const [tests, reason] of Object.entries({ ...SKIPPED_FILES, ...SKIPPED_TESTS }))
        process.stdout.write(`skipped: ${tests}: ${reason}\n`);
    return await runJest({ args, environment: servers.environment, folder, signal });
  } finally {
    await servers?.close();
    await cluster.close();
  }
}

/** Runs a ledger under load while a worker is killed, and compares the rate with that of plain PostgreSQL. */
async function runStory() {
  return await runJest({
    args: ['--testMatch', '**/e2e/citus/distributed.story.ts', '--runInBand'],
    environment: { CITUS_BIN: bin },
    folder,
    signal: stopping.signal,
  });
}

async function exists(path) {
  return await access(path).then(
    () => true,
    () => false,
  );
}
