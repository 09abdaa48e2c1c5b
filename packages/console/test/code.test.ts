import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  createRunSample,
  curlCommand,
  formatJson,
  quoteForShell,
  readableBody,
} from '../src/wording/code.ts';

const run = promisify(execFile);
const SECRET = `whsec_a'b"c$d\`e f`;
const BODY = `{"webhookName":"Ada's \\"best\\" $HOME \`id\` \\\\ hook %s\\n","reason":"naïve – 東京"}`;

interface Received {
  method: string | undefined;
  path: string | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

let receiver: Server;
let origin: string;
let received: Received[];
beforeEach(async () => {
  received = [];
  receiver = createServer(async (request, response) => {
    const { method, url: path, headers } = request;
    received.push({ method, path, headers, body: await buffer(request) });
    response.writeHead(204, { connection: 'close' }).end();
  });
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await once(receiver.close(), 'close');
});

const inShell = (command: string, environment: NodeJS.ProcessEnv) =>
  run('sh', ['-c', command], { env: { PATH: process.env.PATH, ...environment } });

test('the curl command sends the exact bytes of the body, with their HMAC as the authorization header', async () => {
  const url = `${origin}/hooks/it's?ids[]={1,2}&q=a%20b`;
  await inShell(curlCommand({ url, body: BODY }), { HMAC_SECRET: SECRET });
  const [request] = received;
  expect(received).toHaveLength(1);
  expect(request?.method).toBe('POST');
  expect(request?.path).toBe("/hooks/it's?ids[]={1,2}&q=a%20b");
  expect(request?.headers['content-type']).toBe('application/json');
  expect(request?.body.toString()).toBe(BODY);
  const expected = createHmac('sha256', SECRET)
    .update(request?.body ?? '')
    .digest('hex');
  expect(request?.headers.authorization).toBe(expected);
});

test("the curl command sends the signature in the webhook's signature header", async () => {
  await inShell(curlCommand({ url: origin, body: BODY, signatureHeader: "X-$'Sig`" }), {
    HMAC_SECRET: SECRET,
  });
  const expected = createHmac('sha256', SECRET).update(BODY).digest('hex');
  expect(received[0]?.headers).toMatchObject({ "x-$'sig`": expected });
  expect(received[0]?.headers).not.toHaveProperty('authorization');
});

test('the curl command sends nothing without the secret, and the shell reports the missing variable', async () => {
  const failure = await inShell(curlCommand({ url: origin, body: '{}' }), {}).catch((error) => error);
  expect(failure.stderr).toContain('HMAC_SECRET');
  expect(received).toEqual([]);
});

test.each([
  ['nothing special', "'nothing special'"],
  ["it's", "'it'\\''s'"],
  ["''", "''\\'''\\'''"],
])('%s is quoted as one word of the shell', (text, quoted) => {
  expect(quoteForShell(text)).toBe(quoted);
});

test('formatJson indents nested values like JSON.stringify with two spaces', () => {
  const value = {
    a: 1,
    b: [1, [], {}, [{ c: null }]],
    'd:{,[': 'a "quoted", {brace}: [bracket] \\ \n',
    e: { f: { g: true } },
  };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, '\t')])
    expect(formatJson(text)).toBe(JSON.stringify(value, null, 2));
});

test('formatJson preserves the digits of numbers', () => {
  expect(formatJson('{"id":12345678901234567890,"x":1.50}')).toBe(
    '{\n  "id": 12345678901234567890,\n  "x": 1.50\n}',
  );
});

test('formatJson returns null for a text that is not JSON', () => {
  expect(formatJson('not json')).toBeNull();
  expect(formatJson('')).toBeNull();
});

test('readableBody formats a JSON object, returns other text unchanged, and detects binary data', () => {
  expect(readableBody('{"error":"no_text"}')).toEqual({ kind: 'json', text: '{\n  "error": "no_text"\n}' });
  expect(readableBody('{"error":"cut o')).toEqual({ kind: 'text', text: '{"error":"cut o' });
  expect(readableBody('42')).toEqual({ kind: 'text', text: '42' });
  expect(readableBody('caf\uFFFD, written in Latin-1')).toMatchObject({ kind: 'text' });
  const image = Buffer.from('89504e470d0a1a0a0000000d49484452000000100000001008060000001ff3ff61', 'hex');
  expect(readableBody(image.toString())).toEqual({ kind: 'binary' });
});

test("createRunSample() reports a run up to the state in which the webhook's event is sent", () => {
  const sample = (...eventTypes: Parameters<typeof createRunSample>[0]['eventTypes']) =>
    createRunSample({ baseUrl: 'https://x.example', accountId: 1, jobId: 2, runId: 3, eventTypes });
  expect(sample('job.run.started').match(/curl/g)).toHaveLength(1);
  expect(sample('job.run.errored')).toContain('"errored"');
  expect(sample('job.run.errored').match(/curl/g)).toHaveLength(2);
  expect(sample('job.run.completed').match(/curl/g)).toHaveLength(3);
});
