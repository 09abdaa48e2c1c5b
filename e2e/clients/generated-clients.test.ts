import { execFile, spawnSync } from 'node:child_process';
import { appendFile, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createId } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  createTestQueueUrl,
  queueBackends,
  seedAccount,
  type TestAccount,
  type TestDatabase,
} from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import { type RunningService, startService } from '../services.ts';

const run = promisify(execFile);
const clientFile = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Set by `npm run prove -- clients`. The generators are downloaded from their registries, which takes a minute. */
const isProof = ['all', 'generated'].some((name) => process.env.PROVE_CLIENTS?.split(',').includes(name));
if (!isProof)
  process.stderr.write('generated clients are skipped here; npm run prove -- clients tests them\n');

const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
const OPENAPI_PYTHON_CLIENT = 'openapi-python-client==0.29.1';
const TIME_MS = 600_000;

function canRun(program: string, version: string): boolean {
  if (!isProof) return false;
  const isThere = spawnSync(program, [version], { stdio: 'ignore' }).error === undefined;
  if (!isThere) {
    process.stderr.write(`${program} is not on the path: its client was skipped\n`);
    reportFigure('clients', `skipped: the client in ${program}, which is not on the path`);
  }
  return isThere;
}

const withGo = canRun('go', 'version') ? test : test.skip;
const withPython = canRun('python3', '--version') ? test : test.skip;

let folder: string;
let testDatabase: TestDatabase;
let database: PrismaDatabase;
let management: RunningService;
let account: TestAccount;
let token: string;

/** Returns the arguments of a client's program: URL, key, account, job and an event id. */
const verdicts = () => [
  management.url,
  token,
  String(account.id),
  String(account.jobs[0]?.id),
  createId('event'),
];

if (isProof) {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-clients-'));
    testDatabase = await createTestDatabase();
    database = openPrismaDatabase({ url: testDatabase.url });
    account = await seedAccount(database);
    const owner = { accountId: account.id, name: 'client', permissionSets: ['account_admin' as const] };
    token = (await createServiceToken(database.prisma, owner)).token;
    const [backend = { name: 'PostgreSQL' as const }] = queueBackends();
    management = await startService('management', {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: await createTestQueueUrl(backend, testDatabase.url),
    });
    const document = await fetch(`${management.url}/openapi.json`);
    await writeFile(join(folder, 'openapi.json'), await document.text());
  });
  afterAll(async () => {
    await management.stop();
    await database.close();
    await testDatabase.drop();
    // Go's module cache is read-only, so its removal is retried.
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  });
}

/** The expected output of every client. */
const EXPECTED_OUTPUT = {
  jobs: ['Nightly build'],
  webhook: 'Runs to the pager',
  verdicts: ['accepted'],
  runs: 1,
  statuses: [1, 30],
};

const CALLS = ['listJobs', 'createSubscription', 'publishEvents', 'listRuns', 'triggerRun', 'cancelRun'];

/** Appends a line for each call, as client-calls.test.ts does. */
async function recordCalls(client: string, version: string): Promise<void> {
  const file = process.env.CLIENT_CALLS;
  if (file === undefined) return;
  const lines = CALLS.map((call) => JSON.stringify({ client, version, call, outcome: 'pass', detail: '' }));
  await appendFile(file, `${lines.join('\n')}\n`);
}

describe('a client that is generated from /openapi.json with the defaults of', () => {
  withGo(
    'oapi-codegen compiles, lists, creates a webhook, publishes an event, triggers and cancels a run',
    async () => {
      const go = (...args: string[]) => run('go', args, { cwd: folder, maxBuffer: 1e8 });
      await go('mod', 'init', 'example.com/client');
      const { stdout } = await go('run', OAPI_CODEGEN, '-package', 'main', 'openapi.json');
      await writeFile(join(folder, 'client.gen.go'), stdout);
      await cp(clientFile('go-client.go.txt'), join(folder, 'main.go'));
      await go('mod', 'tidy');
      await go('vet', './...');
      const output = await go('run', '.', ...verdicts());
      expect(JSON.parse(output.stdout)).toEqual(EXPECTED_OUTPUT);
      await recordCalls('oapi-codegen (Go)', OAPI_CODEGEN.replace(/.*@v/, ''));
    },
    TIME_MS,
  );

  withPython(
    'openapi-python-client compiles, lists, creates a webhook, publishes an event, triggers and cancels a run',
    async () => {
      const environment = join(folder, 'venv');
      const python = (...args: string[]) =>
        run(join(environment, 'bin', 'python'), args, { cwd: folder, maxBuffer: 1e8 });
      await run('python3', ['-m', 'venv', environment]);
      await python('-m', 'pip', 'install', '--quiet', OPENAPI_PYTHON_CLIENT);
      await python('-m', 'openapi_python_client', 'generate', '--path', 'openapi.json');
      await python('-m', 'pip', 'install', '--quiet', './runhook-client');
      await python('-m', 'compileall', '-q', 'runhook-client');
      const output = await python(clientFile('python-client.py'), ...verdicts());
      expect(JSON.parse(output.stdout)).toEqual(EXPECTED_OUTPUT);
      await recordCalls('openapi-python-client', OPENAPI_PYTHON_CLIENT.replace(/.*==/, ''));
    },
    TIME_MS,
  );
});
