import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  createTestQueueUrl,
  queueBackends,
  seedAccount,
  type TestDatabase,
} from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import { type RunningService, startService } from '../services.ts';
import { CLIENTS, type ClientPackages, findPython, installPackages } from './packages.ts';
import { type RestRunner, startRestRunner } from './rest-runner.ts';
import { startTlsProxy, type TlsProxy } from './tls-proxy.ts';

/**
 * Set by `npm run prove -- clients`: a comma-separated list of clients, or `all`. The packages are downloaded from PyPI, which
 * takes minutes the first time.
 */
const chosen = process.env.PROVE_CLIENTS?.split(',');
/** File to which each call is appended as a line of JSON. */
const resultsFile = process.env.CLIENT_CALLS;
const TIME_MS = 900_000;

/** A call of a client, as its program prints it. */
interface Call {
  client: string;
  version: string;
  call: string;
  outcome: 'pass' | 'fail' | 'not served';
  detail: string;
}

let folder: string;
let testDatabase: TestDatabase;
let database: PrismaDatabase;
let services: RunningService[] = [];
let proxy: TlsProxy;

const hasOpenssl = spawnSync('openssl', ['version'], { stdio: 'ignore' }).error === undefined;

if (chosen !== undefined && hasOpenssl) {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-clients-'));
    testDatabase = await createTestDatabase();
    database = openPrismaDatabase({ url: testDatabase.url });
    proxy = await startTlsProxy(folder);
    const [backend = { name: 'PostgreSQL' as const }] = queueBackends();
    const environment = {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: await createTestQueueUrl(backend, testDatabase.url),
      PUBLIC_URL: proxy.url,
    };
    services = await Promise.all([
      startService('management', environment),
      startService('dispatcher', environment),
    ]);
    proxy.forwardTo((services[0] as RunningService).url);
  });
  afterAll(async () => {
    await proxy.close();
    for (const service of services) await service.stop();
    await database.close();
    await testDatabase.drop();
    await rm(folder, { recursive: true, force: true });
  });
}

describe('the unmodified client', () => {
  for (const client of CLIENTS) {
    const python = pythonOf(client);
    (python === null ? test.skip : test)(
      `${client.name} passes every call of the routes that are served`,
      async () => {
        const program = await installPackages(python as string, client);
        const calls = await withRunner((settings) => runProgram(program, client, settings));
        if (resultsFile !== undefined)
          for (const call of calls) appendFileSync(resultsFile, `${JSON.stringify(call)}\n`);
        expect(calls.length).toBeGreaterThan(0);
        expect(calls.filter(({ outcome }) => outcome === 'fail')).toEqual([]);
        reportFigure(
          'clients',
          `${client.name}: ${calls.filter(({ outcome }) => outcome === 'pass').length}`,
        );
      },
      TIME_MS,
    );
  }
});

/** Returns null, and says why, if the client's test is skipped. */
function pythonOf(client: ClientPackages): string | null {
  if (chosen === undefined || !(chosen.includes('all') || chosen.includes(client.name))) return null;
  const python = hasOpenssl ? findPython(client) : { reason: 'openssl is not on the path' };
  if (typeof python === 'string') return python;
  process.stderr.write(`${client.name} was skipped: ${python.reason}\n`);
  reportFigure('clients', `skipped: ${client.name} (${python.reason})`);
  return null;
}

/** Arguments of a client's program (calls.py). */
interface Settings {
  url: string;
  token: string;
  accountId: number;
  project: { id: number; name: string };
  environment: { id: number; name: string };
  job: { id: number; name: string };
  folder: string;
}

/** Runs the function with a separate account, whose triggered runs a runner executes. */
async function withRunner<T>(use: (settings: Settings) => Promise<T>): Promise<T> {
  const account = await seedAccount(database);
  const permissionSets = ['account_admin' as const];
  const { token } = await createServiceToken(database.prisma, {
    accountId: account.id,
    name: 'client',
    permissionSets,
  });
  const [job] = account.jobs as [(typeof account.jobs)[number]];
  const { url } = services[0] as RunningService;
  await setCommands(`${url}/api/v2/accounts/${account.id}/jobs/${job.id}/`, token, ['dbt build']);
  const runner: RestRunner = startRestRunner({ url, token, accountId: account.id });
  try {
    return await use({
      url: proxy.url,
      token,
      accountId: account.id,
      project: { id: job.project_id, name: job.project_name },
      environment: { id: job.environment_id, name: job.environment_name },
      job: { id: job.id, name: job.name },
      folder,
    });
  } finally {
    await runner.stop();
  }
}

async function setCommands(url: string, token: string, commands: string[]): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ execute_steps: commands }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}

async function runProgram(python: string, client: ClientPackages, settings: Settings): Promise<Call[]> {
  const program = fileURLToPath(new URL(client.program, import.meta.url));
  const child = spawn(python, [program, JSON.stringify(settings)], {
    cwd: folder,
    env: clientEnvironment(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const calls: Call[] = [];
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-ERROR_CHARACTERS_MAX);
  });
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    if (!line.startsWith('{"client": ')) return;
    const call = JSON.parse(line) as Call;
    calls.push(call);
    process.stderr.write(`${call.outcome}: ${call.client}: ${call.call} ${call.detail}\n`);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${client.program} ended with ${code}: ${errors}`);
  return calls;
}

const ERROR_CHARACTERS_MAX = 5_000;

/** The documented configuration of each client, and the certificate that all of them must trust. */
function clientEnvironment({ accountId, token, url }: Settings): NodeJS.ProcessEnv {
  const { PATH, HOME = folder } = process.env;
  const connection = {
    conn_type: 'dbt_cloud',
    login: String(accountId),
    password: token,
    host: new URL(url).host,
  };
  return {
    PATH,
    HOME,
    LANG: 'C.UTF-8',
    PYTHONDONTWRITEBYTECODE: '1',
    SSL_CERT_FILE: proxy.authority,
    REQUESTS_CA_BUNDLE: proxy.authority,
    AIRFLOW_HOME: join(folder, 'airflow'),
    AIRFLOW_CONN_DBT_CLOUD_DEFAULT: JSON.stringify(connection),
    AIRFLOW__CORE__LOAD_EXAMPLES: 'False',
    DAGSTER_DISABLE_TELEMETRY: '1',
    PREFECT_HOME: join(folder, 'prefect'),
    PREFECT_LOGGING_LEVEL: 'ERROR',
    // The flow starts a separate server, which takes long on a busy machine.
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS: '300',
    DO_NOT_TRACK: '1',
  };
}
