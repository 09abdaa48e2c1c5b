import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@runhook/testing';
import { type DevJson, processesOf, type RunningStart, runStart } from './running-start.ts';

/** Ends a test that hangs, because it starts all services on a machine that may be busy. */
const START_TIMEOUT_MS = 600_000;

// All tests use one home folder, with a space in its path. Its mode is 711, because PostgreSQL runs as another account than root.
let folder: string;
let home: string;
let running: RunningStart | null = null;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'runhook e2e ')));
  await chmod(folder, 0o711);
  home = join(folder, 'a home');
});

afterAll(async () => {
  if (running !== null && running.process.exitCode === null) {
    running.process.kill('SIGTERM');
    await running.exited;
  }
  await rm(folder, { recursive: true, force: true });
});

const credentials = () =>
  JSON.parse(readFileSync(join(home, 'credentials.json'), 'utf8')) as Partial<DevJson>;

test(
  'npm start -- --once delivers every event, retries rejected requests, and leaves nothing running',
  async () => {
    running = runStart(home, ['--once']);
    const exit = await running.exited;
    const output = running.output();
    expect([exit, output]).toEqual([0, expect.stringContaining('demonstration passed')]);

    const lines = output.split('\n').filter((line) => line.includes('/webhooks  attempt '));
    for (const type of ['job.run.started', 'job.run.completed', 'job.run.errored']) {
      expect(lines).toContainEqual(
        expect.stringMatching(new RegExp(`${type} +http\\S+ +attempt 1 +\\d{3} \\w+ +signature verified`)),
      );
    }
    const rejected = lines.filter((line) => /job\.run\.completed.*Nightly build/.test(line));
    expect(rejected.map((line) => /attempt \d {2}\d{3}/.exec(line)?.[0])).toEqual([
      'attempt 1  503',
      'attempt 2  503',
      'attempt 3  204',
    ]);
    expect(output).not.toContain('NOT verified');
    // Each step prints its duration, and output that is not a terminal has no colours.
    expect(output).toMatch(/✓ PostgreSQL 18, embedded, on port \d+.* \(\d+\.\d s\)/);
    expect(output).not.toContain('\x1b');

    expect(existsSync(join(home, 'dev.json'))).toBe(false);
    expect(processesOf(home)).toEqual([]);
    expect(readdirSync(home).sort().join(' ')).toMatch(
      /^credentials\.json jobs logs postgres (redis )?secrets\.json$/,
    );
  },
  START_TIMEOUT_MS,
);

test(
  'a second npm start keeps the data, and uses another port if that of management is taken',
  async () => {
    const before = credentials();
    const holder = await holdPort(3000);
    running = runStart(home);
    const readyMs = await running.waitFor('Ready in');
    holder?.close();
    process.stderr.write(`second start: ready in ${(readyMs / 1000).toFixed(1)} s\n`);
    expect(running.output()).toMatch(/port 3000 is taken: management uses \d+/);

    const dev = running.dev();
    expect(new URL(dev.baseUrl).port).not.toBe('3000');
    expect(dev).toMatchObject({
      account: before.account,
      user: before.user,
      serviceToken: before.serviceToken,
      runnerToken: before.runnerToken,
      jobs: before.jobs,
      subscription: before.subscription,
    });
  },
  START_TIMEOUT_MS,
);

test('only its owner can read the dev.json of npm start, and all of its values work', async () => {
  const dev = running?.dev() as DevJson;
  expect(statSync(join(home, 'dev.json')).mode & 0o777).toBe(0o600);
  expect(dev).toEqual({
    baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    account: { id: expect.any(Number), identifier: expect.stringMatching(/^act_/) },
    user: {
      id: expect.any(Number),
      email: 'demo@runhook.local',
      password: expect.stringMatching(/^.{12,}$/),
      apiKey: expect.stringMatching(/^rhu_/),
    },
    serviceToken: expect.stringMatching(/^rhs_/),
    runnerToken: expect.stringMatching(/^rhs_/),
    jobs: [
      { id: expect.any(Number), name: 'Nightly build' },
      { id: expect.any(Number), name: 'Hourly load' },
    ],
    subscription: { id: expect.stringMatching(/^wsu_/), hmacSecret: expect.stringMatching(/^whsec_/) },
    receiverUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/webhooks$/),
    operationsUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    dispatcherUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    databaseUrl: expect.stringMatching(/^postgres:\/\//),
    managementDatabaseUrl: expect.stringMatching(/^postgres:\/\/runhook_management:/),
    queueUrl: expect.stringMatching(/^(redis|postgres):\/\//),
    processes: {
      management: expect.any(Number),
      dispatcher: expect.any(Number),
      receiver: expect.any(Number),
      postgres: expect.any(Number),
      redis: dev.queueUrl.startsWith('redis') ? expect.any(Number) : null,
    },
  });
  for (const pid of Object.values(dev.processes)) if (pid !== null) process.kill(pid, 0);
  for (const url of [dev.operationsUrl, dev.dispatcherUrl]) {
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await fetch(url + path)).status).toBe(200);
  }
  for (const [path, status] of Object.entries({ '/healthz': 200, '/readyz': 200, '/metrics': 404 }))
    expect((await fetch(dev.baseUrl + path)).status).toBe(status);
  const { account, user } = dev;
  const subscription = `${dev.baseUrl}/api/v3/accounts/${account.id}/webhooks/subscription/${dev.subscription.id}`;
  for (const token of [user.apiKey, dev.serviceToken, dev.runnerToken]) {
    const response = await fetch(subscription, { headers: { authorization: `Token ${token}` } });
    expect(await response.json()).toMatchObject({ data: { client_url: dev.receiverUrl, active: true } });
  }
});

test('npm start is rejected while another one uses the home folder, and prints the URL of that one', async () => {
  const other = runStart(home);
  expect(await other.exited).toBe(1);
  expect(other.output()).toContain(`npm start is running already (pid ${running?.process.pid})`);
  expect(other.output()).toContain(running?.dev().baseUrl);
});

test('npm start restarts a service that dies, and dev.json has its new pid', async () => {
  const start = running as RunningStart;
  const before = start.dev().processes.dispatcher as number;
  process.kill(before, 'SIGKILL');
  await start.waitFor('dispatcher restarted');
  await eventually(() => expect(start.dev().processes.dispatcher).not.toBe(before));
  expect(start.output()).toContain(`dispatcher (pid ${before}) was ended by SIGKILL`);
  expect((await fetch(`${start.dev().dispatcherUrl}/readyz`)).status).toBe(200);
});

test(
  'npm start ends the processes that a killed npm start left, keeps the data, and uses a rotated secret',
  async () => {
    const killed = running as RunningStart;
    const { account, processes, baseUrl, subscription, serviceToken } = killed.dev();
    const path = `/api/v3/accounts/${account.id}/webhooks/subscription/${subscription.id}/rotate-secret`;
    const rotation = await fetch(baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Token ${serviceToken}`, 'content-type': 'application/json' },
      body: '{"overlap_hours": 0}',
    });
    const { hmac_secret: hmacSecret } = ((await rotation.json()) as { data: { hmac_secret: string } }).data;
    killed.process.kill('SIGKILL');
    await killed.exited;
    running = runStart(home);
    await running.waitFor('Ready in');
    expect(running.output()).toContain(`ending its management (pid ${processes.management})`);
    expect(running.dev().account).toEqual(account);
    expect(running.dev().subscription).toEqual({ id: subscription.id, hmacSecret });
    expect(running.output()).not.toContain('NOT verified');
  },
  START_TIMEOUT_MS,
);

test(
  'Ctrl-C stops every process of npm start, which exits with 0',
  async () => {
    const start = running as RunningStart;
    start.process.kill('SIGINT');
    expect(await start.exited).toBe(0);
    expect(processesOf(home)).toEqual([]);
    expect(readdirSync(home)).not.toContain('dev.json');
    expect(readdirSync(home)).not.toContain('running.json');
  },
  START_TIMEOUT_MS,
);

/** Listens on the port, so that it is in use. Returns null if another process has it already. */
async function holdPort(port: number): Promise<Server | null> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return null;
  }
}
