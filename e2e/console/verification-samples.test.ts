import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually, type Receiver, startReceiver } from '@runhook/testing';
import { verificationSamples } from '../../packages/console/src/webhook-form/verification-samples.ts';
import { ELEMENT_TIMEOUT_MS, STORY_TIMEOUT_MS } from './support/waiting.ts';

const WAIT_OPTIONS = { timeoutMs: ELEMENT_TIMEOUT_MS };
// The samples are run unchanged, as users run them.
const SECRET = 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw==';
const BODY =
  '{ "eventId":"wev_1","eventType" : "job.run.started","data":{"runId":"7","runStatus":"Täglich ✓"}}';
const MODULES = fileURLToPath(new URL('../../examples/receivers/express/node_modules', import.meta.url));
// The paths contain characters that have a meaning in routes of Express or in a shell.
const PATHS = ['/hook', "/a+b/(c):d*/it's/%C3%A9"];
/** Signature headers: the default and one of a webhook. */
const HEADERS = ['Authorization', 'X-Job-Signature'];

const signature = createHmac('sha256', SECRET).update(BODY).digest('hex');
const hasPython = spawnSync('python3', ['--version']).status === 0;
const hasTools = ['openssl', 'curl'].every((tool) => spawnSync(tool, ['--version']).error === undefined);
if (!hasPython) process.stderr.write('the Python sample is not tested: python3 is not on the path\n');
if (!hasTools) process.stderr.write('the openssl sample is not tested: openssl or curl is not on the path\n');

let folder: string;
let child: ChildProcess | null = null;
let receiver: Receiver | null = null;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'runhook-samples-'));
  symlinkSync(MODULES, join(folder, 'node_modules'));
});
afterEach(async () => {
  if (child !== null && child.exitCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  child = null;
  await receiver?.close();
  receiver = null;
  rmSync(folder, { recursive: true, force: true });
});

const SERVERS = [
  { key: 'express', command: process.execPath, file: 'receiver.mjs', isThere: true },
  { key: 'python', command: 'python3', file: 'receiver.py', isThere: hasPython },
] as const;

const cases = SERVERS.filter(({ isThere }) => isThere).flatMap((server) =>
  PATHS.map((path, index) => ({ ...server, path, header: HEADERS[index] as string })),
);

test.each(cases)(
  "the console's $key sample accepts only a genuine delivery at $path, signed in $header",
  async (server) => {
    const port = await freePort();
    const clientUrl = `http://127.0.0.1:${port}${server.path}`;
    const file = join(folder, server.file);
    writeFileSync(file, codeOf(server.key, clientUrl, server.header));
    const env = { ...process.env, NODE_OPTIONS: '', HMAC_SECRET: SECRET, PORT: String(port) };
    child = spawn(server.command, [file], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout?.on('data', (text) => {
      output += text;
    });
    const post = async (url: string, sent: string, body = BODY) =>
      (await fetch(url, { method: 'POST', headers: { [server.header]: sent }, body })).status;
    const genuine = await eventually(() => post(clientUrl, signature), WAIT_OPTIONS);
    expect(genuine).toBe(204);
    expect(
      await post(
        clientUrl,
        signature.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
      ),
    ).toBe(401);
    expect(await post(clientUrl, '')).toBe(401);
    expect(await post(clientUrl, signature, `${BODY} `)).toBe(401);
    expect(await post(`http://127.0.0.1:${port}/elsewhere`, signature)).toBe(404);
    await eventually(() => expect(output).toContain('job.run.started 7 Täglich ✓'), WAIT_OPTIONS);
  },
  STORY_TIMEOUT_MS,
);

(hasTools ? test : test.skip)(
  "the console's openssl sample computes the signature and sends a signed body",
  async () => {
    receiver = await startReceiver();
    const script = join(folder, 'sample.sh');
    writeFileSync(join(folder, 'body.json'), BODY);
    writeFileSync(script, codeOf('openssl', `${receiver.url}${PATHS[1]}?a=1&b=2`, 'X-Job-Signature'));
    chmodSync(script, 0o755);
    const running = spawn('bash', [script], { cwd: folder, env: { ...process.env, HMAC_SECRET: SECRET } });
    let output = '';
    running.stdout.on('data', (text) => {
      output += text;
    });
    await once(running, 'close');
    expect(output).toContain(signature);
    const [request] = receiver.requests;
    expect(request?.headers['x-job-signature']).toBe(signature);
    expect(request?.body.toString()).toBe(BODY);
    expect(request?.path).toBe(`${PATHS[1]}?a=1&b=2`);
  },
  STORY_TIMEOUT_MS,
);

function codeOf(key: string, clientUrl: string, signatureHeader: string): string {
  const sample = verificationSamples(clientUrl, signatureHeader).find((candidate) => candidate.key === key);
  if (sample === undefined) throw new Error(`there is no sample for ${key}`);
  return sample.code;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
