import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client as Assistant } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { type Client, createClient } from '@runhook/client';
import { verify } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { findRedisServer, startRedis } from '@runhook/embedded';
import { openRedis } from '@runhook/queue';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  queueBackends,
  type Receiver,
  seedAccount,
  startReceiver,
  testEncryptionKeysText,
  WAIT_TIMEOUT_MS,
  withServiceLogin,
} from '@runhook/testing';
import { type CommandResult, run, start } from '../packages/cli/test/command-line.ts';
import { startService } from './services.ts';

const closers: (() => Promise<unknown>)[] = [];
let endpoint: Receiver;
let subscription: Receiver;
let client: Client;
let jobId: number;
let env: Record<string, string>;
let pool: PrismaDatabase['pool'];
let folder: string;

interface Finding {
  check: string;
  status: string;
  message: string;
  remedy: string | null;
}

beforeAll(async () => {
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  pool = database.pool;
  folder = mkdtempSync(join(tmpdir(), 'runhook-cli-'));
  closers.push(async () => rmSync(folder, { recursive: true, force: true }));
  const account = await seedAccount(database);
  jobId = account.jobs[0]?.id ?? 0;
  const permissionSets = ['account_admin' as const];
  const { token } = await createServiceToken(database.prisma, {
    accountId: account.id,
    name: 'cli',
    permissionSets,
  });
  endpoint = await startReceiver();
  subscription = await startReceiver();
  closers.push(
    () => endpoint.close(),
    () => subscription.close(),
  );
  const backend = queueBackends().at(-1) ?? { name: 'PostgreSQL' };
  const environment = {
    DATABASE_URL: testDatabase.url,
    QUEUE_URL: await createTestQueueUrl(backend, testDatabase.url),
  };
  const services = await Promise.all([
    startService('management', environment),
    startService('dispatcher', environment),
  ]);
  closers.push(async () => expect(await Promise.all(services.map((one) => one.stop()))).toEqual([0, 0]));
  env = {
    ...withServiceLogin('management', environment),
    RUNHOOK_URL: services[0].url,
    RUNHOOK_TOKEN: token,
  };
  client = createClient({ url: services[0].url, token, accountId: account.id });
});
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const runhook = (...args: string[]) => run(args, { env });
/** Returns the JSON output of a command that exits with the code. */
async function json(code: number, ...args: string[]) {
  const ran: CommandResult = await runhook(...args, '--json');
  expect(ran).toMatchObject({ code, stderr: '' });
  return JSON.parse(ran.stdout);
}
const report = (run_id: number) =>
  client.post('/api/v2/accounts/{account_id}/runs', {
    body: { job_id: jobId, run_id, engine_version: '1.9.2' },
  });
/** Resolves with the deliveries of a run once its only one is recorded as delivered. */
const deliveredOf = (run_id: string) =>
  eventually(async () => {
    const found = await json(0, 'deliveries', 'list', '--webhook', 'Pager', '--run', run_id);
    expect(found).toMatchObject([{ status: 'delivered', run_id }]);
    return found;
  });

test('listen forwards each delivery once to localhost, and replays the deliveries of a run', async () => {
  const created = await json(
    0,
    'webhooks',
    'create',
    '--name',
    'Pager',
    '--endpoint',
    `${endpoint.url}/hook`,
  );
  expect(created.hmac_secret).toMatch(/^whsec_/);
  await report(1);
  await endpoint.waitFor(1);
  // A delivery is recorded shortly after it was sent, and `listen` would otherwise treat it as new.
  await deliveredOf('1');

  const listening = start(['listen', '--webhook', 'Pager', '--forward', `${subscription.url}/own`], { env });
  const secret = /signed with +(\S+)/.exec(await listening.waitForOutput(/signed with/))?.[1] ?? '';
  await report(2);
  const [forwarded] = await subscription.waitFor(1, { timeoutMs: 9000 });
  const [, sent] = await endpoint.waitFor(2);
  expect(forwarded?.path).toBe('/own');
  expect(forwarded?.body.equals(sent?.body ?? Buffer.of())).toBe(true);
  expect(verify(forwarded?.body ?? '', secret, forwarded?.headers.authorization)).toBe(true);
  expect(verify(sent?.body ?? '', secret, sent?.headers.authorization)).toBe(false);
  await listening.waitForOutput(/job\.run\.started +run 2 +wdl_\w+ +200 in \d+ ms/);

  // A redelivery is another attempt of the same delivery: it is sent to the endpoint, and not forwarded again.
  const [delivery] = await deliveredOf('2');
  expect(await json(0, 'deliveries', 'redeliver', delivery.id, '--webhook', 'Pager')).toMatchObject({
    id: delivery.id,
  });
  await endpoint.waitFor(3);
  subscription.respondWith({ status: 503, body: 'not now' });
  await report(3);
  await subscription.waitFor(2);
  await listening.waitForOutput(/run 3 .* 503 in \d+ ms: not now/);
  expect(await listening.stop()).toMatchObject({ code: 0, stderr: '' });
  expect(subscription.requests.map(({ body }) => JSON.parse(body.toString()).data.runId)).toEqual(['2', '3']);

  const listenArguments = ['listen', '--forward', subscription.url, '--replay', 'run'];
  expect(await runhook(...listenArguments, '1')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/run 1 .* 503/),
  });
  subscription.respondWith(200);
  const replayed = await runhook(...listenArguments, '1', '--secret', secret, '--json');
  expect(
    replayed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { kind: 'started', secret },
    { kind: 'delivery', run_id: '1', status: 200 },
  ]);
  expect(subscription.requests.at(-1)?.body.equals(endpoint.requests[0]?.body ?? Buffer.of())).toBe(true);
  expect(await runhook(...listenArguments, '99')).toMatchObject({
    code: 1,
    stderr: 'error: There is no delivery of run 99.\n',
  });
});

test('commands create, show, change and delete jobs', async () => {
  const options = ['--project', 'Analytics', '--environment', 'Production', '--step', 'dbt build'];
  const { id, project_id } = await json(0, 'jobs', 'create', '--name', 'Weekly', ...options);
  expect(await json(0, 'jobs', 'list', '--search', 'weekly', '--project', `${project_id}`)).toMatchObject([
    { id, name: 'Weekly', execute_steps: ['dbt build'] },
  ]);
  const updated = await runhook('jobs', 'update', `${id}`, '--step', 'dbt seed', '--step', 'dbt run');
  expect(updated.stdout).toMatch(/^step: +dbt seed\nstep: +dbt run$/m);
  await json(0, 'webhooks', 'create', '--name', 'Of one job', '--endpoint', endpoint.url, '--job', `${id}`);
  expect(await runhook('jobs', 'delete', `${id}`)).toMatchObject({ code: 2 });
  expect((await runhook('jobs', 'delete', `${id}`, '--yes')).stdout).toMatch(
    /^Deleted Weekly \(\d+\)\.\nWebhook Of one job \(wsu_\w{27}\) still lists it\.\n$/,
  );
  expect(await runhook('jobs', 'get', `${id}`)).toMatchObject({
    code: 1,
    stderr: `error: There is no job ${id}.\n`,
  });
  await runhook('webhooks', 'delete', 'Of one job', '--yes');
});

test('commands set, show, find and clear the delivery options of webhooks, and duplicate one', async () => {
  const options = ['--rate-limit', '2.5', '--ordered', '--run-status', 'errored', '--label', 'team=data'];
  const create = ['webhooks', 'create', '--name', 'Chat', '--endpoint', endpoint.url, '--inactive'];
  expect(await json(0, ...create, '--format', 'slack', ...options)).toMatchObject({
    format: 'slack',
    filters: { run_statuses: ['20'] },
    ordered: true,
    rate_limit: 2.5,
    labels: { team: 'data' },
  });
  expect((await runhook('webhooks', 'get', 'Chat')).stdout).toMatch(
    /^format: +slack\nrun statuses: +errored\nordered: +yes\nrate limit: +2.5 per second\nlabels: +team=data$/m,
  );
  const found = ['webhooks', 'list', '--label', 'team=data', '--event', 'job.run.started'];
  expect(await json(0, ...found)).toMatchObject([{ name: 'Chat' }]);
  const update = [
    'webhooks',
    'update',
    'Chat',
    '--clear',
    'ordered',
    '--clear',
    'labels',
    '--rate-limit',
    '5',
  ];
  const updated = await json(0, ...update);
  expect(updated).toMatchObject({ name: 'Chat', format: 'slack', rate_limit: 5, active: false });
  expect(updated).not.toHaveProperty('ordered');
  expect(await runhook('webhooks', 'update', 'Chat', '--clear', 'name')).toMatchObject({ code: 2 });
  expect(await json(0, 'webhooks', 'duplicate', 'Chat')).toMatchObject({
    name: 'Chat (copy)',
    format: 'slack',
    hmac_secret: expect.stringMatching(/^whsec_/),
  });
  for (const name of ['Chat', 'Chat (copy)']) await runhook('webhooks', 'delete', name, '--yes');
});

test('commands show and change webhooks, deliveries and runs', async () => {
  expect(await json(0, 'webhooks', 'list', '--search', 'Pager')).toMatchObject([{ name: 'Pager' }]);
  const listed = await runhook('webhooks', 'list');
  expect(listed.stdout).toMatch(/^ID +NAME +STATE +LAST +URL\nwsu_\w{27} +Pager +active +200 +http/);
  const got = await runhook('webhooks', 'get', 'Pager');
  expect(got.stdout).toMatch(/^name: +Pager$/m);
  expect(got.stdout).not.toContain('whsec_');
  endpoint.respondWith(418);
  expect(await json(1, 'webhooks', 'test', 'Pager')).toMatchObject({ verification_status_code: '418' });
  expect(await json(0, 'webhooks', 'rotate-secret', 'Pager')).toMatchObject({
    secret_rotation: expect.anything(),
  });

  await client.post('/api/v2/accounts/{account_id}/runs/{run_id}/finish', {
    path: { run_id: 3 },
    body: {
      status: 'errored',
      status_message: 'Model orders failed',
      run_steps: [
        {
          index: 1,
          name: 'Invoke dbt with `dbt build`',
          status: 20,
          logs: '\x1b[31mFAIL\x1b[0m\x1b[2J orders\r\n',
        },
        { index: 2, name: 'Upload', status: 30 },
      ],
    },
  });
  expect(await json(0, 'runs', 'steps', '3')).toMatchObject([{ index: 1, status: 20 }, { index: 2 }]);
  expect((await runhook('runs', 'steps', '3')).stdout).toMatch(
    /^1 +Error +00:00:00 +\d+ +Invoke dbt with `dbt build`$/m,
  );
  expect((await runhook('runs', 'logs', '3')).stdout).toBe(
    '==> 1. Invoke dbt with `dbt build`\n\x1b[31mFAIL\x1b[0m orders\n==> 2. Upload\n\n',
  );
  expect((await runhook('runs', 'logs', '3', '--step', '1')).stdout).toBe('\x1b[31mFAIL\x1b[0m orders\n');
  expect(await runhook('runs', 'logs', '3', '--step', '9')).toMatchObject({
    code: 1,
    stderr: 'error: Run 3 has no step 9.\n',
  });
  expect(await json(0, 'runs', 'list', '--status', 'Errored')).toMatchObject([
    { id: 3, status: 20, status_humanized: 'Error' },
  ]);
  expect((await runhook('runs', 'get', '3')).stdout).toMatch(/^status_message: +Model orders failed$/m);
  await eventually(async () => {
    const expectedEvent = { event_type: 'job.run.errored', state: 'matched', delivery_count: 1 };
    expect(await json(0, 'runs', 'events', '3')).toMatchObject([
      { event_type: 'job.run.started' },
      expectedEvent,
    ]);
  });
  await json(
    0,
    'webhooks',
    'create',
    '--name',
    'Successes',
    '--endpoint',
    endpoint.url,
    '--run-status',
    'success',
  );
  expect((await runhook('runs', 'why', '3', '--webhook', 'Successes')).stdout).toMatch(
    /^WEBHOOK +NOT NOTIFIED OF +REASON\nSuccesses +job.run.started job.run.errored +It was created later, at /,
  );
  expect(await json(0, 'runs', 'why', '3', '--webhook', 'Pager')).toEqual([]);
  expect((await runhook('webhooks', 'preview', '--run-status', 'errored')).stdout).toMatch(
    /^1 of \d+ events of the last 7 days match\.\n$/,
  );
  await runhook('webhooks', 'delete', 'Successes', '--yes');
  const [failing] = await json(0, 'deliveries', 'list', '--run', '3', '--event', 'job.run.errored');
  const one = await eventually(async () => {
    const found = await runhook('deliveries', 'get', failing.id, '--webhook', 'Pager');
    expect(found.stdout).toMatch(/^1 +\S+ +418 +\d+ ms +The endpoint responded with 418\.$/m);
    return found;
  });
  expect(one.stdout).toContain('"runStatusMessage":"Model orders failed"');

  expect(await runhook('webhooks', 'delete', 'Pager')).toMatchObject({ code: 2 });
  expect(await runhook('webhooks', 'delete', 'pager', '--yes')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^error: There is no webhook named pager\. Similar: wsu_\w+ \(Pager\)\.\n$/,
    ),
  });
  expect(await runhook('webhooks', 'delete', 'Pager', '--yes')).toMatchObject({ code: 0 });
  expect(await runhook('runs', 'get', '99')).toMatchObject({
    code: 1,
    stderr: 'error: There is no run 99.\n',
  });
  const wrong = await run(['runs', 'list', '--json'], { env: { ...env, RUNHOOK_TOKEN: 'rhs_wrong' } });
  expect(JSON.parse(wrong.stderr)).toMatchObject({ error: { code: 'rejected_401' } });
});

test('files of a run are uploaded, listed and downloaded', async () => {
  await report(40);
  const source = join(folder, 'manifest.json');
  writeFileSync(source, '{"nodes": {}}');
  expect((await json(0, 'artifacts', 'upload', '40', source)).bytes).toBe(13);
  expect((await runhook('artifacts', 'upload', '40', source, '--path', 'a/b.json', '--step', '2')).code).toBe(
    0,
  );
  expect(await json(0, 'artifacts', 'list', '40')).toEqual(['a/b.json', 'manifest.json']);
  const target = join(folder, 'downloaded.json');
  const arguments_ = ['artifacts', 'download', '40', 'a/b.json', '--step', '2', '--output', target];
  expect(await runhook(...arguments_)).toMatchObject({ code: 0, stderr: '' });
  expect(readFileSync(target, 'utf8')).toBe('{"nodes": {}}');
  expect(await runhook('artifacts', 'download', '40', 'missing')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The run has no such artifact.'),
  });
});

describe('the server of the Model Context Protocol', () => {
  /** Starts the built program as assistants do, and returns the results of tools as text. */
  async function startTools(...args: string[]) {
    const assistant = new Assistant({ name: 'a test', version: '1' });
    const protocolErrors: Error[] = [];
    assistant.onerror = (error) => protocolErrors.push(error);
    const main = fileURLToPath(new URL('../packages/cli/dist/main.js', import.meta.url));
    const parameters = {
      command: process.execPath,
      args: [main, 'mcp', ...args],
      env,
      stderr: 'pipe' as const,
    };
    await assistant.connect(new StdioClientTransport(parameters));
    const results: string[] = [];
    return {
      assistant,
      protocolErrors,
      results,
      async call(name: string, values: Record<string, unknown> = {}) {
        const { content, isError = false } = await assistant.callTool({ name, arguments: values });
        const [{ text = '' } = {}] = content as { text?: string }[];
        results.push(text);
        return { isError, text, json: isError ? null : JSON.parse(text) };
      },
    };
  }

  test('is read-only, and names failing webhooks, their causes, deliveries and runs without secrets', async () => {
    const { hmac_secret: secret } = await json(
      0,
      'webhooks',
      'create',
      '--name',
      'Watched',
      '--endpoint',
      endpoint.url,
    );
    endpoint.respondWith({ status: 500, body: `called with ${env.RUNHOOK_TOKEN}` });
    for (const run of [11, 12]) await report(run);
    const tools = await startTools();
    const { tools: listed } = await tools.assistant.listTools();
    expect(listed.map(({ name }) => name)).toEqual([
      'list_failing_webhooks',
      'list_run_notifications',
      'get_delivery',
      'get_run_logs',
    ]);
    for (const { annotations, description } of listed) {
      expect(annotations).toMatchObject({ readOnlyHint: true });
      expect(description).toMatch(/Changes nothing\.$/);
    }
    expect(tools.assistant.getInstructions()).toMatch(/read-only.*--allow-changes/);

    const [incident] = await eventually(async () => {
      const { json: incidents } = await tools.call('list_failing_webhooks');
      expect(incidents).toMatchObject([{ webhook_name: 'Watched', status: 'open', failed_deliveries: 2 }]);
      return incidents;
    });
    expect(incident.causes).toMatchObject([{ http_status_code: '500', advice: expect.stringMatching(/\S/) }]);
    const { json: notified } = await tools.call('list_run_notifications', { run_id: 11 });
    expect(notified).toMatchObject({
      events: [{ event_type: 'job.run.started', state: 'matched', notified_webhooks: 1 }],
      deliveries: [{ webhook_name: 'Watched', last_http_status_code: '500', status: 'failed' }],
      not_notified: expect.any(Array),
    });
    const [{ delivery_id }] = notified.deliveries;
    expect((await tools.call('get_delivery', { webhook: 'Watched', delivery_id })).json).toMatchObject({
      payload: { eventType: 'job.run.started' },
      attempt_results: expect.arrayContaining([
        expect.objectContaining({ http_status_code: '500', response_body: 'called with rhs_[removed]' }),
      ]),
    });
    expect((await tools.call('get_run_logs', { run_id: 11 })).json).toMatchObject({ run_id: 11, steps: [] });

    expect(await tools.call('get_run_logs', { run_id: 99 })).toMatchObject({
      isError: true,
      text: 'There is no run 99.',
    });
    expect(await tools.call('get_delivery', { webhook: 'watched', delivery_id })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^There is no webhook named watched\. Similar: wsu_/),
    });
    expect(await tools.call('redeliver', { webhook: 'Watched', delivery_ids: [delivery_id] })).toMatchObject({
      isError: true,
    });
    await tools.assistant.close();
    expect(tools.protocolErrors).toEqual([]);
    for (const text of tools.results)
      for (const hidden of [secret, env.RUNHOOK_TOKEN]) expect(text).not.toContain(hidden);
  });

  test('tests, redelivers and recovers if changes are allowed, and says what each tool changes', async () => {
    const tools = await startTools('--allow-changes');
    const { tools: listed } = await tools.assistant.listTools();
    const changing = listed.filter(({ annotations }) => annotations?.readOnlyHint === false);
    expect(changing.map(({ name }) => name)).toEqual([
      'test_endpoint',
      'redeliver',
      'recover',
      'trigger_run',
    ]);
    for (const { description } of changing) expect(description).toContain(' Changes: ');

    endpoint.respondWith(200);
    expect((await tools.call('test_endpoint', { webhook: 'Watched' })).json).toMatchObject({
      endpoint: new URL(endpoint.url).origin,
      is_accepted: true,
      http_status_code: '200',
    });
    const { json: notified } = await tools.call('list_run_notifications', { run_id: 12 });
    const [{ delivery_id }] = notified.deliveries;
    const delivery_ids = [delivery_id, 'wdl_unknown'];
    const sent = await tools.call('redeliver', { webhook: 'Watched', delivery_ids });
    expect(sent.json).toMatchObject([
      { delivery_id, status: 'pending' },
      { delivery_id: 'wdl_unknown', error: expect.stringMatching(/\S/) },
    ]);
    const recovery = await tools.call('recover', { webhook: 'Watched', since: '2026-01-01T00:00:00Z' });
    expect(recovery.json).toMatchObject({ recovery_id: expect.stringMatching(/^wrc_/) });
    expect(await tools.call('trigger_run', { job: 'No such job', cause: 'a test' })).toMatchObject({
      isError: true,
      text: 'There is no job named No such job.',
    });
    const [job] = await json(0, 'jobs', 'list');
    const { json: triggered } = await tools.call('trigger_run', { job: job.id, cause: 'a test' });
    expect(triggered).toMatchObject({ run_id: expect.any(Number), job_id: job.id, status: 'Queued' });
    expect((await tools.call('get_run_logs', { run_id: triggered.run_id })).json).toMatchObject({
      steps: [],
    });
    await tools.assistant.close();
    expect(tools.protocolErrors).toEqual([]);
    expect(await runhook('webhooks', 'delete', 'Watched', '--yes')).toMatchObject({ code: 0 });
    endpoint.respondWith(418);
  });
});

test('the doctor reports each fault of an installation with a remedy', async () => {
  const redis = findRedisServer() === null ? null : await startRedis({ dataDir: join(folder, 'redis') });
  if (redis === null)
    process.stdout.write('the eviction of Redis was not tested: there is no redis-server\n');
  else closers.push(() => redis.stop());
  const healthyEnv = {
    ...env,
    ENCRYPTION_KEYS: testEncryptionKeysText,
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    QUEUE_URL: redis?.url ?? String(env.QUEUE_URL),
  };
  const runDoctor = async (changed: Record<string, string> = {}, ...args: string[]) => {
    const ran = await run(['doctor', '--json', '--endpoint', endpoint.url, ...args], {
      env: { ...healthyEnv, ...changed },
    });
    const findings: Finding[] = JSON.parse(ran.stdout);
    const failed = findings.filter(({ status }) => status === 'failed');
    expect(ran.code).toBe(failed.length === 0 ? 0 : 1);
    for (const { remedy } of failed) expect(remedy).toMatch(/\S/);
    return { findings, failed: failed.map(({ check, message }) => `${check}: ${message}`) };
  };
  const withOtherHost = (change: (url: URL) => void) => {
    const url = new URL(String(env.DATABASE_URL));
    change(url);
    return url.href;
  };

  await json(0, 'webhooks', 'create', '--name', 'Kept', '--endpoint', endpoint.url);
  const { findings, failed } = await runDoctor();
  expect(failed).toEqual([]);
  expect(findings.map(({ check }) => check)).toEqual([
    'settings',
    'database',
    'pooler',
    'schema',
    'database clock',
    'partitions',
    'locks',
    'keys',
    'privileges',
    'writes',
    'jit',
    'statistics',
    'commit',
    'quarantine',
    'queue',
    ...(redis === null ? [] : ['eviction', 'queue clock']),
    'egress',
    'proxies',
    'service',
    'token',
  ]);

  // 1 and 2: an unreadable setting does not prevent other checks.
  expect((await runDoctor({ EGRESS_PORTS: 'https' })).failed).toEqual([
    'settings: EGRESS_PORTS is not valid',
  ]);
  const unreachable = {
    DATABASE_URL: withOtherHost((url) => Object.assign(url, { port: '1', password: 'not-to-be-told' })),
  };
  const unreachableFindings = await runDoctor(unreachable);
  expect(unreachableFindings.failed).toEqual(['database: cannot be reached (ECONNREFUSED)']);
  expect(JSON.stringify(unreachableFindings)).not.toContain('not-to-be-told');
  // 3: the name of the database.
  const wrongDatabase = {
    DATABASE_URL: withOtherHost((url) => Object.assign(url, { pathname: '/nobodys' })),
  };
  expect((await runDoctor(wrongDatabase)).failed).toEqual([
    'database: has no database with the name in DATABASE_URL',
  ]);
  const { failed: ofReplica } = await runDoctor({ DATABASE_REPLICA_URL: String(env.DATABASE_URL) });
  expect(ofReplica).toEqual(['replica: is not a replica']);
  // 4: the queue.
  expect((await runDoctor({ QUEUE_URL: 'redis://127.0.0.1:1' })).failed).toEqual([
    'queue: cannot be reached (ECONNREFUSED)',
  ]);
  // 5: Redis evicts jobs.
  if (redis !== null) {
    const client = await openRedis(redis.url, () => undefined);
    await client?.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect((await runDoctor()).failed).toEqual([
      expect.stringMatching(/^eviction: maxmemory-policy is allkeys-lru/),
    ]);
    await client?.config('SET', 'maxmemory-policy', 'noeviction');
    client?.disconnect();
  }
  // 6 and 7: another key, and another key with the same name.
  const other = randomBytes(32).toString('base64');
  const [name] = testEncryptionKeysText.split(':');
  expect((await runDoctor({ ENCRYPTION_KEYS: `other:${other}` })).failed).toEqual([
    expect.stringMatching(/^keys: Secrets are under/),
  ]);
  expect((await runDoctor({ ENCRYPTION_KEYS: `${name}:${other}` })).failed).toEqual([
    expect.stringMatching(/^keys: .* does not decrypt/),
  ]);
  // 8: an endpoint that must not be called, or is unreachable.
  expect((await runDoctor({ EGRESS_ALLOW_CIDRS: '' })).failed).toEqual([
    expect.stringMatching(/^egress: the endpoint must not point to the address 127/),
  ]);
  expect((await runDoctor({}, '--endpoint', 'http://127.0.0.1:1')).failed).toEqual([
    'egress: 127.0.0.1:1 is allowed but cannot be reached (ECONNREFUSED)',
  ]);
  // 9: the service and the token.
  expect((await runDoctor({ RUNHOOK_URL: endpoint.url })).failed).toEqual([
    'service: the response (418) is not from Runhook',
    expect.stringMatching(/^token: cannot be checked/),
  ]);
  expect((await runDoctor({ RUNHOOK_TOKEN: 'rhs_wrong' })).failed).toEqual([
    'token: is rejected: invalid, revoked or expired',
  ]);
  // 10: a wrong clock. Runs the built program, as users do.
  const clockPreload = ['--import', fileURLToPath(new URL('chaos/clock-ahead.mjs', import.meta.url))];
  const main = fileURLToPath(new URL('../packages/cli/dist/main.js', import.meta.url));
  const ran = spawnSync(process.execPath, [...clockPreload, main, 'doctor'], {
    env: { ...healthyEnv, CLOCK_AHEAD_MS: '3600000' },
    encoding: 'utf8',
  });
  expect(ran.status).toBe(1);
  expect(ran.stdout).toMatch(
    /^FAILED +database clock +is 3[56]\d\d\.\d s behind the clock of this machine\n +→ Synchronize both/m,
  );

  // The last ones affect the services, too: partitions and migrations.
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
  await pool.query(`SELECT drop_day_partition('events', $1::date)`, [tomorrow]);
  expect((await runDoctor()).failed).toEqual([
    `partitions: are missing: events_${tomorrow.replaceAll('-', '')}`,
  ]);
  await pool.query(
    'DELETE FROM _prisma_migrations WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations)',
  );
  expect((await runDoctor()).failed).toEqual([
    expect.stringMatching(/^schema: is older than this release: The migration \w+ is not applied/),
    expect.stringMatching(/^service: is not ready: database \(SCHEMA_BEHIND\)/),
  ]);
});
