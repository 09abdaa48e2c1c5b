// npm run prove -- matrix: runs the core tests on each supported Node, PostgreSQL and queue server that is available on this machine.
import { spawn } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { bootstrap } from '../build/bootstrap.mjs';
import { readArguments, requireChoice, usage } from '../shared/arguments.mjs';
import { step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { POSTGRES_SETTINGS } from '../test/run/servers.mjs';
import { makeTestFolder } from '../test/run/test-folder.mjs';
import {
  combinations,
  fetchNode,
  fetchPostgres,
  fetchQueueServer,
  findNewerNodes,
  tested,
  UnavailableError,
} from './matrix-parts.mjs';
import { recordProof } from './proofs.mjs';

/**
 * The core tests: the story of a delivery on both queues, egress, the queue, the migrations, `npm start`, and the published
 * packages.
 */
const CORE_TESTS = [
  'e2e/story',
  'e2e/start.test.ts',
  'packages/egress/test/',
  'packages/queue/test/backends/',
  'services/dispatcher/test/dispatch.test.ts',
  'services/migrate/test/',
  'scripts/test/packages.test.ts',
];
const RUN_MINUTES_MAX = 20;

const choices = (part) => Object.keys(tested[part]).join(', ');
const USAGE = usage({
  call: 'npm run prove -- matrix [<pattern>… --pairs --node <name> --postgres <name> --queue <name>]',
  purpose:
    'runs the core tests on each supported Node, PostgreSQL and queue server; a proof (docs/proofs.md)',
  duration: '5 runs of 5 to 10 minutes, or 20 with --pairs; Ctrl-C prints the table so far',
  prerequisites:
    "npm and PyPI for the versions, and Debian's postgresql and redis-server; a version that is missing is skipped and named",
  details: `<pattern>   test files to run instead of the core tests
--pairs     runs each pair of versions; each version at least once when omitted
--node      only this version (repeatable): ${choices('node')}
--postgres  likewise: ${choices('postgres')}
--queue     likewise: ${choices('queue')}`,
});

const { values, positionals } = readArguments(USAGE, {
  allowPositionals: true,
  options: {
    pairs: { type: 'boolean', default: false },
    node: { type: 'string', multiple: true },
    postgres: { type: 'string', multiple: true },
    queue: { type: 'string', multiple: true },
  },
});
for (const part of Object.keys(tested))
  for (const name of values[part] ?? []) requireChoice(`--${part}`, name, Object.keys(tested[part]));
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

const cache = join(root, 'node_modules', '.cache', 'matrix');
await mkdir(cache, { recursive: true });
await bootstrap({ signal: stopping.signal });
// Bootstrap builds this module, so the import must follow it.
const { startPostgres } = await import('../../packages/embedded/dist/index.js');

const programs = { node: new Map(), postgres: new Map(), queue: new Map() };
const unavailable = [];
await collect('node', (version) => fetchNode(version, cache, stopping.signal));
await collect('postgres', (version) => fetchPostgres(version, cache, stopping.signal));
await collect('queue', (source) => fetchQueueServer(source, cache, stopping.signal));
for (const sentence of await findNewerNodes(tested.node, stopping.signal).catch(() => []))
  process.stdout.write(`${sentence}\n`);

const results = [];
const names = Object.fromEntries(Object.entries(programs).map(([part, found]) => [part, [...found.keys()]]));
if (Object.values(names).every((found) => found.length > 0)) {
  for (const combination of combinations(names, values.pairs ? 'pairs' : 'once')) {
    if (!stopping.signal.aborted) results.push(await runCombination(combination));
  }
}
finish();

/** Fetches the versions of a part, in the order of the table. Stores the reason for each that is unavailable. */
async function collect(part, fetch) {
  const wanted = values[part] ?? Object.keys(tested[part]);
  for (const name of wanted) {
    const version = tested[part][name];
    try {
      programs[part].set(name, await step(`fetching ${part} ${name}`, () => fetch(version)));
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      unavailable.push(`${part} ${name}: ${error.message}`);
    }
  }
}

async function runCombination({ node, postgres, queue }) {
  const title = `Node ${tested.node[node]}, PostgreSQL ${postgres}, ${queue}`;
  const { folder, remove } = await makeTestFolder('matrix');
  const startedAt = performance.now();
  let database = null;
  try {
    // Precedes the rest of the path, so that the tests start this Node and this server.
    const bin = join(folder, 'bin');
    await mkdir(bin);
    await symlink(programs.node.get(node), join(bin, 'node'));
    await symlink(programs.queue.get(queue), join(bin, 'redis-server'));
    database = await startPostgres({
      dataDir: join(folder, 'postgres'),
      settings: POSTGRES_SETTINGS,
      internals: { binaries: programs.postgres.get(postgres) },
    });
    const { code, output } = await runTests(programs.node.get(node), bin, database.url);
    const [, passed, failed, skipped] =
      /^tests: (\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(output) ?? [];
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
    const isGood = code === 0;
    if (!isGood) await writeFile(join(cache, 'last-failure.log'), output);
    const verdict = { node: tested.node[node], postgres, queue, isGood, passed, failed, skipped, minutes };
    process.stdout.write(`${title}: ${isGood ? 'passed' : 'FAILED'} in ${minutes} min\n`);
    if (!isGood) process.stdout.write(`${failures(output)}\n`);
    return verdict;
  } finally {
    await database?.stop();
    await remove();
  }
}

function runTests(node, bin, databaseUrl) {
  const { REDIS_URL: _, ...inherited } = process.env;
  const env = {
    ...inherited,
    PATH: [bin, dirname(node), process.env.PATH].join(delimiter),
    TEST_DATABASE_URL: databaseUrl,
  };
  const patterns = positionals.length === 0 ? CORE_TESTS : positionals;
  const child = spawn(node, [join(root, 'scripts', 'test.mjs'), ...patterns], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // The child stops everything that it has started.
  const stop = () => child.kill('SIGTERM');
  const timer = setTimeout(stop, RUN_MINUTES_MAX * 60_000);
  stopping.signal.addEventListener('abort', stop, { once: true });
  return new Promise((resolve, reject) => {
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      stopping.signal.removeEventListener('abort', stop);
      resolve({ code, output });
    });
  });
}

/** Returns the titles of failed tests and the path of the complete output. */
function failures(output) {
  const titles = new Set(output.split('\n').filter((line) => /^\s+● |^FAIL |^stopped by/.test(line)));
  return [...titles, `  complete output: ${join(cache, 'last-failure.log')}`].join('\n');
}

function figureOf() {
  const passed = results.reduce((sum, row) => sum + Number(row.passed), 0);
  const versions = Object.entries(names).map(([part, found]) => `${part} ${found.join(', ')}`);
  return `${results.length} runs, ${passed} tests passed: ${versions.join('; ')}`;
}

function finish() {
  const rows = results.map((row) => [
    row.node,
    row.postgres,
    row.queue,
    row.isGood ? 'passed' : 'FAILED',
    `${row.passed ?? 0} passed, ${row.failed ?? '?'} failed, ${row.skipped ?? '?'} skipped`,
    `${row.minutes} min`,
  ]);
  const lines = [['Node', 'PostgreSQL', 'queue', 'verdict', 'tests', 'time'], ...rows];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((cells) => cells[column].length)));
  process.stdout.write('\n');
  for (const cells of lines)
    process.stdout.write(
      `${cells
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd()}\n`,
    );
  process.stdout.write('npm start in these runs uses the PostgreSQL of packages/embedded.\n');
  for (const sentence of unavailable) process.stdout.write(`unavailable: ${sentence}\n`);
  const isGood = results.length > 0 && results.every((row) => row.isGood) && !stopping.signal.aborted;
  process.exitCode = isGood ? 0 : 1;
  const isChoice = positionals.length > 0 || ['node', 'postgres', 'queue'].some((part) => values[part]);
  if (isGood && !isChoice)
    recordProof('matrix', [figureOf(), ...unavailable.map((reason) => `skipped: ${reason}`)]);
}
