import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createAccount, createJob, createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createQueueBackend, openRunRequestQueue } from '@runhook/queue';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  queueBackends,
  type Receiver,
  startReceiver,
} from '@runhook/testing';
import { reconcileRunRequests } from '../services/dispatcher/src/maintenance/run-requests.ts';
import { type ServiceInProcess, startServiceInProcess } from './services-in-process.ts';

const EXAMPLES = fileURLToPath(new URL('../examples/job-runner/', import.meta.url));

const PYTHON_SOURCES = fileURLToPath(new URL('../packages/python/src', import.meta.url));

/** Returns a Python that the package supports; null without one. */
function findPython(): string | null {
  const check = 'import sys; sys.exit(sys.version_info < (3, 9))';
  return spawnSync('python3', ['-c', check]).status === 0 ? 'python3' : null;
}

/** Prints a line and waits until the file of its argument exists. */
const WAIT_SCRIPT = `
  console.log('started');
  setInterval(() => require('node:fs').existsSync(process.argv[1]) && process.exit(), 20)`;

/** Writes into the folder of its argument a file that the service stores, and one with an invalid name. */
const WRITE_SCRIPT = `
  const { mkdirSync, writeFileSync } = require('node:fs');
  mkdirSync(process.argv[1], { recursive: true });
  for (const [name, content] of [['a b.txt', 'x'], ['stored.txt', 'x']])
    writeFileSync(process.argv[1] + '/' + name, content);`;

/** Prints more than the service accepts in one call. */
const LONG_LOG_SCRIPT = `process.stdout.write('x'.repeat(5e6) + 'end')`;

interface Runner {
  process: ChildProcess;
  errors(): string;
}

// biome-ignore lint/suspicious/noExplicitAny: a run as a client reads it
type Json = any;

const kinds = queueBackends();
const cases = [
  ...kinds.map((kind) => ({ name: `the queue on ${kind.name}`, kind, hasQueue: true })),
  { name: 'REST', kind: kinds[0] as (typeof kinds)[number], hasQueue: false },
];

describe.each(cases)('the example job runner, by $name', ({ kind, hasQueue }) => {
  let database: PrismaDatabase;
  let receiver: Receiver;
  let management: ServiceInProcess;
  let folder: string;
  let queueUrl: string;
  let accountId: number;
  let token: string;
  const jobs = { quick: 0, failing: 0, waiting: 0, writing: 0, long: 0 };
  const closers: (() => Promise<unknown>)[] = [];
  const runners: ChildProcess[] = [];

  beforeAll(async () => {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    database = openPrismaDatabase({ url: testDatabase.url });
    closers.push(() => database.close());
    queueUrl = await createTestQueueUrl(kind, testDatabase.url);
    receiver = await startReceiver();
    closers.push(() => receiver.close());
    folder = await mkdtemp(join(tmpdir(), 'runhook job '));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const { prisma } = database;
    const plan = { plan: 'enterprise', deployment: 'multi_tenant' } as const;
    accountId = (await createAccount(prisma, { name: 'Acme', ...plan })).id;
    ({ token } = await createServiceToken(prisma, {
      accountId,
      name: 'test',
      permissionSets: ['account_admin'],
    }));
    for (const name of ['quick', 'failing', 'waiting', 'writing', 'long'] as const) {
      const parents = { projectName: 'Analytics', environmentName: 'Production' };
      jobs[name] = (await createJob(prisma, { accountId, name, ...parents })).id;
    }
    const environment = { DATABASE_URL: testDatabase.url, QUEUE_URL: queueUrl };
    management = await startServiceInProcess('management', environment);
    closers.push(() => management.stop());
    const dispatcher = await startServiceInProcess('dispatcher', environment);
    closers.push(() => dispatcher.stop());
    await call('POST', '/api/v3', '/webhooks/subscriptions', {
      name: 'Runs',
      client_url: receiver.url,
      event_types: ['job.run.started', 'job.run.errored', 'job.run.completed'],
    });
    await writeJobs();
  });
  // A runner that still lives could claim the run of the next test.
  afterEach(async () => {
    for (const runner of runners.splice(0)) {
      if (runner.exitCode !== null) continue;
      const exit = once(runner, 'exit');
      runner.kill('SIGKILL');
      await exit;
    }
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });

  const release = () => join(folder, 'release');
  const artifacts = () => join(folder, 'artifacts');

  async function writeJobs(): Promise<void> {
    const node = (script: string, ...args: string[]) => [process.execPath, '-e', script, ...args];
    const content = {
      accountId,
      engineVersion: '1.9.2',
      programs: ['echo'],
      jobs: {
        [jobs.quick]: { steps: [node('console.log("42 models built")')] },
        [jobs.failing]: {
          steps: [node('console.error("3 rows have no customer"); process.exit(3)'), 'echo x'],
        },
        [jobs.waiting]: { steps: [node(WAIT_SCRIPT, release())] },
        [jobs.writing]: { steps: [node(WRITE_SCRIPT, artifacts())], artifacts: artifacts() },
        [jobs.long]: { steps: [node(LONG_LOG_SCRIPT)] },
      },
    };
    await writeFile(join(folder, 'jobs.json'), JSON.stringify(content));
  }

  async function call(method: string, version: string, path: string, body?: object): Promise<Json> {
    const response = await fetch(`${management.url}${version}/accounts/${accountId}${path}`, {
      method,
      headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const json = (await response.json()) as Json;
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(json.status)}`);
    return json.data;
  }
  const post = (path: string, body?: object) => call('POST', '/api/v2', path, body);
  const read = (runId: number): Promise<Json> =>
    call('GET', '/api/v2', `/runs/${runId}/?include_related=run_steps`);
  const hasStatus = (runId: number, status: number) =>
    eventually(async () => expect((await read(runId)).status).toBe(status));
  const trigger = async (job: keyof typeof jobs, body: object = {}): Promise<number> =>
    (await post(`/jobs/${jobs[job]}/run/`, body)).id;

  function startRunner(
    program: readonly string[] = [process.execPath, join(EXAMPLES, 'dist/main.js')],
    variables: Record<string, string> = {},
  ): Runner {
    const [command = '', ...args] = program;
    const child = spawn(command, [...args, join(folder, 'jobs.json')], {
      env: {
        PATH: process.env.PATH,
        RUNHOOK_URL: management.url,
        RUNHOOK_TOKEN: token,
        ...(hasQueue && { QUEUE_URL: queueUrl }),
        ...variables,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    runners.push(child);
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    return { process: child, errors: () => errors };
  }

  /** Expires the lease of a run, and offers the run again as maintenance does. */
  async function expireLease(runId: number): Promise<void> {
    await database.pool.query(
      `UPDATE run_requests SET lease_expires_at = now() - interval '1 second' WHERE account_id = $1 AND run_id = $2`,
      [accountId, runId],
    );
    const runRequests = openRunRequestQueue(createQueueBackend(queueUrl), () => undefined);
    await reconcileRunRequests({ pool: database.pool, runRequests });
    await runRequests.close();
  }

  /** Resolves once the receiver has got exactly these events of a run, and all deliveries are on record as delivered. */
  async function received(runId: number, eventTypes: string[]): Promise<void> {
    await eventually(async () => {
      const { rows } = await database.pool.query(
        `SELECT d.event_type, d.status FROM deliveries d WHERE d.account_id = $1 AND d.run_id = $2 ORDER BY d.event_type`,
        [accountId, runId],
      );
      expect(rows).toEqual(
        eventTypes.toSorted().map((type) => ({ event_type: `job.run.${type}`, status: 'delivered' })),
      );
    });
    const bodies = receiver.requests.map(({ body }) => JSON.parse(body.toString()) as Json);
    const ofRun = bodies.filter(({ data }) => data.runId === String(runId));
    expect(ofRun.map(({ eventType }) => eventType.replace('job.run.', '')).toSorted()).toEqual(
      eventTypes.toSorted(),
    );
  }

  async function undispatchedCount(): Promise<number> {
    const { rows } = await database.pool.query('SELECT count(*)::int FROM undispatched_events');
    return rows[0]?.count;
  }

  test('executes a triggered run, reports its steps, and all events are delivered', async () => {
    const runId = await trigger('quick', { cause: 'A test' });
    expect(await call('GET', '/api/v3', `/webhooks/run/${runId}/events`)).toEqual([]);
    startRunner();
    await hasStatus(runId, 10);
    expect(await read(runId)).toMatchObject({
      reason: 'A test',
      engine_version: '1.9.2',
      run_steps: [{ index: 1, status: 10, logs: expect.stringContaining('42 models built') }],
    });
    await received(runId, ['started', 'completed']);
  });

  test('reports the message of a failed command, and executes only steps of a trigger that the file permits', async () => {
    startRunner();
    const failing = await trigger('failing');
    await hasStatus(failing, 20);
    expect(await read(failing)).toMatchObject({
      status_message: '3 rows have no customer',
      run_steps: [{ status: 20 }, { name: 'echo x', status: 30 }],
    });
    await received(failing, ['started', 'errored', 'completed']);
    const permitted = await trigger('failing', { steps_override: ['echo "of the trigger"'] });
    await hasStatus(permitted, 10);
    expect((await read(permitted)).run_steps).toMatchObject([{ logs: 'of the trigger\n' }]);
    const forbidden = await trigger('quick', { steps_override: ['rm -rf x'] });
    await hasStatus(forbidden, 20);
    expect((await read(forbidden)).status_message).toContain('may not execute "rm"');
  });

  /** Runs the job that writes files which the service rejects. */
  async function expectRejections(): Promise<void> {
    const runId = await trigger('writing');
    await hasStatus(runId, 10);
    expect((await read(runId)).run_steps).toMatchObject([
      { index: 1, status: 10 },
      {
        index: 2,
        name: 'Upload artifacts',
        logs: expect.stringContaining('a b.txt: '),
      },
    ]);
    expect(await call('GET', '/api/v2', `/runs/${runId}/artifacts/`)).toEqual(['stored.txt']);
  }

  /** Runs the job whose log is too long. */
  async function expectEndOfLog(): Promise<void> {
    const runId = await trigger('long');
    await hasStatus(runId, 10);
    expect((await read(runId)).run_steps).toMatchObject([
      { status: 10, logs: expect.stringMatching(/xend$/) },
    ]);
  }

  test('a run keeps its result if the service rejects some of its files, or would reject its log', async () => {
    startRunner();
    await expectRejections();
    await expectEndOfLog();
  });

  // The runner in Python uses REST only.
  const python = findPython();
  (hasQueue || python === null ? test.skip : test)('in Python executes, fails and cancels runs', async () => {
    const packages = join(folder, 'python');
    await mkdir(join(packages, 'runhook-0.1.0.dist-info'), { recursive: true });
    const metadata = 'Metadata-Version: 2.1\nName: runhook\nVersion: 0.1.0\n';
    await writeFile(join(packages, 'runhook-0.1.0.dist-info', 'METADATA'), metadata);
    const runner = startRunner([python ?? '', join(EXAMPLES, 'python/runner.py')], {
      PYTHONPATH: `${PYTHON_SOURCES}:${packages}`,
      PYTHONDONTWRITEBYTECODE: '1',
    });
    const quick = await trigger('quick');
    await hasStatus(quick, 10);
    expect(await read(quick)).toMatchObject({
      run_steps: [{ index: 1, status: 10, logs: '42 models built\n' }],
    });
    const failing = await trigger('failing');
    await hasStatus(failing, 20);
    expect(await read(failing)).toMatchObject({ status_message: '3 rows have no customer' });
    const waiting = await trigger('waiting');
    await hasStatus(waiting, 3);
    await post(`/runs/${waiting}/cancel/`);
    const next = await trigger('quick');
    await hasStatus(next, 10);
    await received(failing, ['started', 'errored', 'completed']);
    await received(waiting, ['started']);
    await expectEndOfLog();
    expect(runner.errors()).toBe('');
    await expectRejections();
  });

  test('another runner finishes the run of one that hangs, which gets a 409 when it returns', async () => {
    const first = startRunner();
    const runId = await trigger('waiting');
    // The report of the first step renews the lease: it must not arrive after expireLease.
    await eventually(async () => expect((await read(runId)).run_steps).toMatchObject([{ status: 3 }]));
    first.process.kill('SIGSTOP');
    await expireLease(runId);
    const second = startRunner();
    await eventually(async () => {
      const { rows } = await database.pool.query('SELECT attempts FROM run_requests WHERE run_id = $1', [
        runId,
      ]);
      expect(rows).toEqual([{ attempts: 2 }]);
    });
    await writeFile(release(), '');
    await hasStatus(runId, 10);
    await received(runId, ['started', 'completed']);
    first.process.kill('SIGCONT');
    await eventually(() => expect(first.errors()).toContain('The lease of this run has ended'));
    expect(second.errors()).toBe('');
    await rm(release());
    expect(await read(runId)).toMatchObject({ status: 10 });
    await received(runId, ['started', 'completed']);
  });

  test('ends the command of a run that is cancelled, sends nothing more, and leaves nothing undispatched', async () => {
    const runner = startRunner();
    const runId = await trigger('waiting');
    await hasStatus(runId, 3);
    await post(`/runs/${runId}/cancel/`);
    // The runner has ended the command: it takes the next run.
    const next = await trigger('quick');
    await hasStatus(next, 10);
    await received(next, ['started', 'completed']);
    expect(await read(runId)).toMatchObject({ status: 30, is_cancelled: true });
    await received(runId, ['started']);
    await eventually(async () => expect(await undispatchedCount()).toBe(0));
    const exit = once(runner.process, 'exit');
    runner.process.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  });
});
