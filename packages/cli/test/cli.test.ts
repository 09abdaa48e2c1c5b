import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createHmacSecret, EVENT_TYPES, sign, standardWebhooksHeaders, verify } from '@runhook/contract';
import { type Receiver, startReceiver } from '@runhook/testing';
import { run } from './command-line.ts';

const SECRET = createHmacSecret();
let folder: string;
let receiver: Receiver;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'runhook-cli-'));
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.close();
  rmSync(folder, { recursive: true, force: true });
});

const file = (name: string, content: string | Buffer, mode = 0o600) => {
  const path = join(folder, name);
  writeFileSync(path, content, { mode });
  return path;
};

describe('--help', () => {
  const COMMANDS = [
    'listen',
    'send',
    'verify',
    'mcp',
    'completion',
    'webhooks list',
    'webhooks get',
    'webhooks create',
    'webhooks update',
    'webhooks duplicate',
    'webhooks preview',
    'webhooks test',
    'webhooks rotate-secret',
    'webhooks rotate-signature-key',
    'webhooks delete',
    'deliveries list',
    'deliveries get',
    'deliveries redeliver',
    'jobs list',
    'jobs get',
    'jobs create',
    'jobs update',
    'jobs delete',
    'jobs run',
    'runs list',
    'runs get',
    'runs events',
    'runs why',
    'runs steps',
    'runs logs',
    'runs cancel',
    'runs retry',
    'artifacts list',
    'artifacts upload',
    'artifacts download',
  ];

  test.each(COMMANDS)('of %s shows its description, its options and an example', async (command) => {
    const result = await run([...command.split(' '), '--help']);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(new RegExp(`^Usage: runhook ${command} `));
    expect(result.stdout).toMatch(/\n\n[A-Z][\s\S]*\.\n\n(Arguments|Options):/);
    expect(result.stdout).toMatch(new RegExp(`Examples?:\n  runhook ${command}`));
    expect(result.stdout).toContain('--json');
  });

  test('shows the exit codes, and an invalid command line gives a one-line error and the exit code 2', async () => {
    expect((await run(['--help'])).stdout).toMatch(/Exit codes:\n {2}0 .*\n {2}1 .*\n {2}2 /);
    const result = await run(['webhoks', 'list']);
    expect(result).toEqual({
      code: 2,
      stdout: '',
      stderr: "error: unknown command 'webhoks' (Did you mean webhooks?) (see --help)\n",
    });
    const asJson = await run(['send', '--json', '--to', 'ftp://a']);
    expect(asJson.code).toBe(2);
    expect(JSON.parse(asJson.stderr)).toEqual({ error: { code: 'usage', message: expect.any(String) } });
  });
});

describe('the command send', () => {
  test('sends a sample of each event type, signed with a secret that is shown', async () => {
    const countBefore = receiver.requests.length;
    const { code, stdout, stderr } = await run(['send', '--to', `${receiver.url}/hook`]);
    expect(code).toBe(0);
    const secret = /whsec_\S+/.exec(stderr)?.[0] ?? '';
    const arrived = receiver.requests.slice(countBefore);
    expect(arrived.map(({ body }) => JSON.parse(body.toString()).eventType)).toEqual([...EVENT_TYPES]);
    for (const { body, headers } of arrived) expect(verify(body, secret, headers.authorization)).toBe(true);
    expect(stdout.split('\n')[0]).toMatch(/^job\.run\.started +200 in \d+ ms$/);
  });

  test('sends the exact bytes of a file, and exits with 1 if the response is not a 2xx', async () => {
    receiver.respondWith({ status: 500, body: 'no\u001b[31m' });
    const bytes = '{ "eventId": "wev_7",\r\n "a": "é" }\n';
    const args = ['send', '--to', receiver.url, '--file', file('body', bytes), '--secret', SECRET];
    const { code, stdout } = await run([...args, '--signature-header', 'X-Signature']);
    receiver.respondWith(200);
    expect(code).toBe(1);
    expect(stdout).toMatch(/ 500 in \d+ ms: no\\u001b\[31m\n$/);
    const last = receiver.requests.at(-1);
    expect(last?.body.toString()).toBe(bytes);
    expect(last?.headers).toMatchObject({ 'x-signature': sign(bytes, SECRET), 'webhook-id': 'wev_7' });
  });

  test('reports an endpoint that cannot be reached', async () => {
    const { code, stdout } = await run([
      'send',
      '--to',
      'http://127.0.0.1:1/',
      '--type',
      'job.run.errored',
      '--json',
    ]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      sample: 'job.run.errored',
      status: null,
      error: 'ECONNREFUSED',
    });
  });
});

describe('the command verify', () => {
  const BODY = '{"eventId":"wev_1","data":{}}';
  const check = (body: string | Buffer, header: string[], env = { RUNHOOK_SECRET: SECRET }) =>
    run(['verify', ...header.flatMap((value) => ['--header', value])], { env, input: body });

  test('accepts a correct signature of either scheme', async () => {
    expect(await check(BODY, [sign(BODY, SECRET)])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/is valid/),
    });
    const standard = standardWebhooksHeaders('wev_1', 5, BODY, [SECRET]);
    const lines = Object.entries(standard).map(([name, value]) => `${name}: ${value}`);
    expect(await check(BODY, lines)).toMatchObject({ code: 0 });
  });

  test('reports how a body was changed and which byte differs', async () => {
    const { code, stdout } = await check(`${BODY}\n`, [sign(BODY, SECRET)]);
    expect(code).toBe(1);
    expect(stdout).toContain('A trailing newline was added to the body.');
    expect(stdout).toContain(`Byte ${BODY.length} differs: your body has a line feed (0x0a)`);
    const latin = await check(Buffer.from('{"a":"é"}', 'latin1'), [sign('{"a":"é"}', SECRET)]);
    expect(latin).toMatchObject({ code: 1, stderr: expect.stringMatching(/not valid UTF-8 from byte 6 on/) });
  });

  test('reports a missing secret, a masked signature and a missing file', async () => {
    expect(await check(BODY, [sign(BODY, SECRET)], { RUNHOOK_SECRET: '' })).toMatchObject({ code: 2 });
    expect(await check(BODY, ['Authorization: ***'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/mask of the log/),
    });
    expect(await run(['verify', join(folder, 'none'), '--header', 'x', '--secret', SECRET])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: ENOENT/),
    });
  });
});

test('a token file is used only if other users cannot read it', async () => {
  const listWebhooks = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    run(['webhooks', 'list', '--url', 'http://127.0.0.1:1', '--account', '1', ...args], { env });
  const openTokenFile = file('open-token', 'rhs_secret\n');
  chmodSync(openTokenFile, 0o640);
  const rejected = await listWebhooks({}, '--token-file', openTokenFile);
  expect(rejected).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/Other users can read .*chmod 600/),
  });
  expect(rejected.stderr).not.toContain('rhs_secret');
  expect(await listWebhooks({ RUNHOOK_TOKEN_FILE: openTokenFile })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/Other users can read/),
  });
  chmodSync(openTokenFile, 0o600);
  // The file is used, so the command fails only because there is no service.
  expect(await listWebhooks({}, '--token-file', openTokenFile)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/cannot be reached/),
  });
  expect(await listWebhooks({})).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/No token: set RUNHOOK_TOKEN/),
  });
  expect(await listWebhooks({ RUNHOOK_TOKEN: 'two words' })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/not contain a valid token/),
  });
});

test('names of commands, options and their values are completed, also by the script for bash', async () => {
  const complete = async (...args: string[]) =>
    (await run(['__complete', ...args])).stdout.trim().split('\n');
  expect(await complete('web')).toEqual(['webhooks']);
  expect(await complete('webhooks', 'r')).toEqual(['rotate-secret', 'rotate-signature-key']);
  expect(await complete('deliveries', 'list', '--status', 'f')).toEqual(['failed']);
  expect(await complete('listen', '--webhook', 'l')).toEqual(['']);
  expect(await complete('listen', '--webhook', 'listen', '--fo')).toEqual(['--forward']);
  expect(await complete('completion', '')).toEqual(['bash', 'fish', 'zsh']);
  const { stdout: script } = await run(['completion', 'bash']);
  const probe = `${script}\nrunhook() { echo webhooks; }\nCOMP_WORDS=(runhook we) COMP_CWORD=1 _runhook; echo "$COMPREPLY"`;
  const { stdout, error } = spawnSync('bash', ['-c', probe], { encoding: 'utf8' });
  if (error) process.stdout.write(`bash was not run: ${error.message}\n`);
  else expect(stdout.trim()).toBe('webhooks');
});

describe('artifacts download', () => {
  const env = () => ({ RUNHOOK_URL: receiver.url, RUNHOOK_TOKEN: 'rhs_1', RUNHOOK_ACCOUNT: '1' });
  const workingFolder = process.cwd();
  let target: string;
  beforeEach(() => {
    target = mkdtempSync(join(folder, 'download-'));
    process.chdir(target);
  });
  afterEach(() => {
    process.chdir(workingFolder);
    receiver.respondWith(200);
  });
  const download = (...args: string[]) =>
    run(['artifacts', 'download', '5', 'a/x.txt', ...args], { env: env() });
  const respond = (body: string, headers: Record<string, string> = {}) =>
    receiver.respondWith({ status: 200, headers, body });

  test.each([[[]], [['--output', 'x.txt']]])('with %j leaves nothing if it is interrupted', async (args) => {
    respond('hal', { 'content-length': '8', connection: 'close' });
    expect((await download(...args)).code).toBe(1);
    expect(readdirSync(target)).toEqual([]);
    respond('complete');
    expect(await download(...args)).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(target)).toEqual(['x.txt']);
    expect(readFileSync('x.txt', 'utf8')).toBe('complete');
  });

  test('replaces an existing file only if it is named', async () => {
    writeFileSync('x.txt', 'mine');
    respond('theirs');
    expect((await download()).code).toBe(1);
    expect(readFileSync('x.txt', 'utf8')).toBe('mine');
    expect((await download('--output', 'x.txt')).code).toBe(0);
    expect(readFileSync('x.txt', 'utf8')).toBe('theirs');
    expect(readdirSync(target)).toEqual(['x.txt']);
  });
});
