import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  createTestQueueUrl,
  oneQueueBackend,
  type QueueBackend,
  seedAccount,
  seedSubscription,
  startReceiver,
} from '@runhook/testing';
import { RECEIVER_TEMPLATES } from '../packages/console/src/webhook-help/receiver-templates.ts';
import { startServiceInProcess } from './services-in-process.ts';

const RECEIVERS = fileURLToPath(new URL('../examples/receivers', import.meta.url));
const SECRET = 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw==';
// Differs from the output of JSON.stringify and is not ASCII, because receivers must verify the bytes.
const BODY =
  '{ "eventId":"wev_1","eventType" : "job.run.started","webhooksID":"wsu_1","data":{"jobName":"Täglich ✓"}}';

const sign = (body: string, secret = SECRET) => createHmac('sha256', secret).update(body).digest('hex');
const python = spawnSync('python3', ['--version']).status === 0;
if (!python) process.stderr.write('the Python receiver is not tested: python3 is not on the path\n');

interface Example {
  name: keyof typeof RECEIVER_TEMPLATES;
  program: string;
  /** Path below examples/receivers. */
  file: string;
}

const receivers: Example[] = [
  { name: 'express', program: process.execPath, file: 'express/receiver.js' },
  ...(python ? [{ name: 'python', program: 'python3', file: 'python/receiver.py' } as const] : []),
];

interface Running {
  child: ChildProcess;
  /** URL that the receiver prints when it listens. */
  url: string;
  lines: AsyncIterator<string>;
}

async function run(
  { program }: Pick<Example, 'program'>,
  file: string,
  settings: Record<string, string> = {},
): Promise<Running> {
  const env = { ...process.env, NODE_OPTIONS: '', HMAC_SECRET: SECRET, PORT: '0', ...settings };
  const child = spawn(program, [file], { cwd: RECEIVERS, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const { listening: url } = JSON.parse((await lines.next()).value) as { listening: string };
  return { child, url, lines };
}

async function stop({ child }: Running): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
}

describe.each(receivers)('the $name receiver', (example) => {
  let running: Running;

  beforeAll(async () => {
    running = await run(example, example.file);
  });

  afterAll(() => stop(running));

  async function deliver(body: string, authorization: string | null) {
    const { url, lines } = running;
    const headers = { 'webhook-id': 'wev_1', ...(authorization === null ? {} : { authorization }) };
    const { status } = await fetch(url, { method: 'POST', body, headers });
    return { status, line: JSON.parse((await lines.next()).value) as Record<string, unknown> };
  }

  test('accepts a delivery that carries the signature of its exact bytes', async () => {
    const { status, line } = await deliver(BODY, sign(BODY));
    expect(status).toBe(204);
    expect(line).toMatchObject({
      verified: true,
      status: 204,
      eventId: 'wev_1',
      eventType: 'job.run.started',
    });
  });

  test.each([
    ['a changed body', `${BODY} `, sign(BODY)],
    ['another secret', BODY, sign(BODY, 'whsec_other')],
    ['no signature', BODY, null],
    ['an empty signature', BODY, ''],
    ['a signature in capitals', BODY, sign(BODY).toUpperCase()],
    ['a signature cut short', BODY, sign(BODY).slice(0, 63)],
    ['a signature that is too long', BODY, `${sign(BODY)}0`],
    ['an empty body', '', sign(BODY)],
    ['a body that is not JSON', 'not JSON', sign('something else')],
  ])('rejects %s, and prints nothing of the body', async (_what, body, authorization) => {
    const { status, line } = await deliver(body, authorization);
    expect(status).toBe(401);
    expect(line).toMatchObject({ verified: false, status: 401, eventId: null, eventType: null });
  });
});

test('the help page of the console has every language of the example receivers', () => {
  const folders = readdirSync(RECEIVERS, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(Object.keys(RECEIVER_TEMPLATES).sort()).toEqual(folders.map(({ name }) => name).sort());
});

// Fills in the receiver as the console's help page does. The path contains characters that have a meaning in Express routes.
test.each(receivers)(
  'the $name receiver that the console fills in for a webhook accepts deliveries only with its signature header and at its path',
  async (example) => {
    const folder = mkdtempSync(join(tmpdir(), 'runhook-receiver-'));
    const from = join(RECEIVERS, dirname(example.file));
    const isCode = (path: string) => !path.includes('node_modules');
    cpSync(from, folder, { recursive: true, filter: isCode });
    if (example.name === 'express') symlinkSync(join(from, 'node_modules'), join(folder, 'node_modules'));
    const path = "/a+b/(c):d*/it's/%C3%A9";
    const webhook = { clientUrl: `https://a.example${path}?key=1`, signatureHeader: 'X-Signature' };
    const file = join(folder, basename(example.file));
    writeFileSync(
      file,
      RECEIVER_TEMPLATES[example.name](readFileSync(join(RECEIVERS, example.file), 'utf8'), webhook),
    );
    const running = await run(example, file);
    try {
      const { origin } = new URL(running.url);
      const post = async (at: string, headers: Record<string, string>) =>
        (await fetch(origin + at, { method: 'POST', body: BODY, headers })).status;
      expect(await post(`${path}?key=1`, { 'x-signature': sign(BODY) })).toBe(204);
      expect(await post(path, { authorization: sign(BODY) })).toBe(401);
      expect(await post('/webhooks', { 'x-signature': sign(BODY) })).toBe(404);
    } finally {
      await stop(running);
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

const chatReceivers = receivers.map(({ name, program }) => ({
  name,
  program,
  file: name === 'express' ? 'express/chat.js' : 'python/chat.py',
}));

describe('the receivers that post results to a chat', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function open() {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    const database = openPrismaDatabase({ url: testDatabase.url });
    closers.push(() => database.close());
    const account = await seedAccount(database);
    const owner = { accountId: account.id, name: 'runner', permissionSets: ['account_admin' as const] };
    const { token } = await createServiceToken(database.prisma, owner);
    const [backend] = oneQueueBackend() as [QueueBackend];
    const environment = {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: await createTestQueueUrl(backend, testDatabase.url),
      PUBLIC_URL: 'https://runhook.example.com',
    };
    const [management, dispatcher] = await Promise.all([
      startServiceInProcess('management', environment),
      startServiceInProcess('dispatcher', environment),
    ]);
    closers.push(() => Promise.all([management.stop(), dispatcher.stop()]));
    const api = async (method: string, path: string, body?: unknown) => {
      const response = await fetch(`${management.url}/api/${path}`, {
        method,
        headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      expect([response.status, response.ok ? '' : await response.text()]).toEqual([expect.any(Number), '']);
      return ((await response.json()) as { data: { id: number } }).data;
    };
    return { account, token, management, database, api };
  }

  test('post the failed step and model of a run that has failed, each once', async () => {
    const { account, token, management, database, api } = await open();
    const accountId = account.id;
    const chat = await startReceiver();
    closers.push(() => chat.close());
    for (const { name, program, file } of chatReceivers) {
      const clientUrl = 'http://127.0.0.1:9/webhooks';
      const { id, hmacSecret } = await seedSubscription(database, { accountId, clientUrl, name });
      const running = await run({ program }, file, {
        HMAC_SECRET: hmacSecret,
        API_URL: management.url,
        API_KEY: token,
        CHAT_URL: `${chat.url}/${name}`,
      });
      closers.push(() => stop(running));
      await api('PUT', `v3/accounts/${accountId}/webhooks/subscription/${id}/`, {
        name,
        event_types: ['job.run.completed'],
        client_url: running.url,
        active: true,
      });
    }
    const runs = `v2/accounts/${accountId}/runs`;
    const [job] = account.jobs;
    const { id } = await api('POST', `${runs}/`, { job_id: job?.id, engine_version: '1.9.0' });
    const result = { unique_id: 'model.warehouse.b', status: 'error', message: 'no column "c"' };
    const success = { unique_id: 'model.warehouse.a', status: 'success', message: 'SELECT 1' };
    const file = { metadata: {}, results: [success, result] };
    await api('PUT', `${runs}/${id}/artifacts/run_results.json`, file);
    await api('POST', `${runs}/${id}/finish/`, {
      status: 'errored',
      run_steps: [
        { index: 1, name: 'Invoke dbt with `dbt deps`', status: 10, logs: 'Installed.' },
        { index: 2, name: 'Invoke dbt with `dbt build`', status: 20, logs: 'Done.\n1 error' },
      ],
    });
    await api('POST', `${runs}/${id}/artifacts/`);
    const requests = await chat.waitFor(chatReceivers.length);
    for (const { name } of chatReceivers) {
      const messages = requests.filter(({ path }) => path === `/${name}`);
      const [text] = messages.map(({ body }) => (JSON.parse(body.toString()) as { text: string }).text);
      expect(text?.split('\n')).toEqual([
        expect.stringMatching(
          new RegExp(
            `^<https://runhook\\.example\\.com/.+\\|Error: run ${id} of Nightly build> in Production, `,
          ),
        ),
        expect.stringMatching(/^✅ Invoke dbt with `dbt deps` \(Success, /),
        expect.stringMatching(/^❌ Invoke dbt with `dbt build` \(Error, /),
        'Done.',
        '1 error',
        '• model.warehouse.b: error: no column "c"',
      ]);
    }
  });
});
