import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { connect } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { hashCredential } from '@runhook/database';
import { eventually } from '@runhook/testing';
import { checkedFetch } from '../checked-fetch.ts';
import { type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let jobId: number;
beforeAll(async () => {
  harness = await startHarness({ artifactsMbPerAccount: 20 });
  account = await harness.newAccount();
  jobId = await harness.newJob(account);
});
afterAll(() => harness.close());

async function newRun(): Promise<string> {
  const path = `/api/v2/accounts/${account.id}/runs/`;
  const body = { job_id: jobId, engine_version: '1.9.2' };
  const { json } = await harness.call('POST', path, { token: account.token, body });
  return `${path}${json.data.id}/`;
}

/** Sends bytes and receives bytes; `path` is not normalized, as a hostile client would send it. */
async function send(
  method: string,
  path: string,
  body: Buffer | null = null,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }> {
  const { hostname, port } = new URL(harness.origin);
  const authorization = `Token ${account.token}`;
  const length = body === null ? {} : { 'content-length': String(body.length) };
  const options: RequestOptions = {
    hostname,
    port,
    path,
    method,
    headers: { authorization, ...length, ...headers },
  };
  return await new Promise((resolve, reject) => {
    const request = httpRequest(options, (response) => {
      buffer(response).then(
        (received) =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: received }),
        reject,
      );
    });
    request.on('error', reject);
    request.end(body ?? undefined);
  });
}

/** Uploads a file and calls `midway` when a part of it is stored. */
async function sendInTwo(path: string, headers: Record<string, string>, midway: () => Promise<unknown>) {
  const { hostname, port } = new URL(harness.origin);
  const options = { hostname, port, path, method: 'PUT', headers: { ...headers, 'content-length': 600_000 } };
  const request = httpRequest(options);
  const responded = once(request, 'response') as Promise<[IncomingMessage]>;
  request.write(Buffer.alloc(500_000));
  await eventually(async () => expect(await objectsOf(path)).toBe(1));
  await midway();
  request.end(Buffer.alloc(100_000));
  const [response] = await responded;
  await text(response);
  return response.statusCode;
}

/** Returns the number of stored objects of the run that the path names. */
async function objectsOf(path: string): Promise<number> {
  const runId = /\/runs\/(\d+)\//.exec(path)?.[1];
  const { rows } = await harness.database.pool.query(
    'SELECT count(DISTINCT object_id)::int AS count FROM artifact_contents WHERE run_id = $1',
    [runId],
  );
  return rows[0].count;
}

/** Holds back the commits of uploads until both contents are stored, so that neither upload sees the other one. */
async function sendAtOnce(paths: [string, string], bytes: number): Promise<number[]> {
  const client = await harness.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE artifacts IN EXCLUSIVE MODE');
    const uploads = paths.map((path) => send('PUT', path, randomBytes(bytes)));
    await eventually(async () => expect(await objectsOf(paths[0])).toBe(2));
    await client.query('COMMIT');
    return (await Promise.all(uploads)).map(({ status }) => status).sort();
  } finally {
    client.release();
  }
}

const envelope = ({ body }: { body: Buffer }) => JSON.parse(body.toString());
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const MANIFEST = Buffer.from('{"metadata": {}}');

test('a file is stored, listed and returned as it was sent, to be saved and not to be shown', async () => {
  const run = await newRun();
  expect((await harness.call('GET', `${run}artifacts/`, { token: account.token })).json.data).toEqual([]);
  const bytes = randomBytes(1_000_000);
  const stored = await send('PUT', `${run}artifacts/a/target.bin`, bytes, { 'content-type': 'text/html' });
  expect(stored.status).toBe(201);
  expect(envelope(stored).data).toEqual({
    path: 'a/target.bin',
    step: null,
    bytes: bytes.length,
    sha256: sha256(bytes),
  });
  await send('PUT', `${run}artifacts/manifest.json/`, MANIFEST);
  const { json } = await harness.call('GET', `${run}artifacts`, { token: account.token });
  expect(json.data).toEqual(['a/target.bin', 'manifest.json']);
  for (const path of ['a/target.bin', 'a/target.bin/', 'a%2Ftarget.bin']) {
    const received = await send('GET', `${run}artifacts/${path}`);
    expect(received.status).toBe(200);
    expect(received.body.equals(bytes)).toBe(true);
    expect(received.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '1000000',
      'content-disposition': 'attachment; filename="target.bin"',
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store, no-transform',
      'accept-ranges': 'bytes',
      etag: `"${sha256(bytes)}"`,
    });
  }
  const head = await send('HEAD', `${run}artifacts/a/target.bin`);
  expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, '1000000', 0]);
  // RFC 9110 defines ranges of GET alone.
  for (const range of ['bytes=0-4', 'bytes=1000000-']) {
    const ranged = await send('HEAD', `${run}artifacts/a/target.bin`, null, { range });
    expect([ranged.status, ranged.headers['content-length']]).toEqual([200, '1000000']);
  }
});

test.each([
  ['x.json', 'application/json'],
  ['x.sql', 'text/plain; charset=utf-8'],
  ['x.LOG', 'text/plain; charset=utf-8'],
  ['index.html', 'application/octet-stream'],
  ['x.svg', 'application/octet-stream'],
  ['x.xhtml', 'application/octet-stream'],
  ['x.pdf', 'application/octet-stream'],
  ['x.js', 'application/octet-stream'],
  ['noextension', 'application/octet-stream'],
  ['json', 'application/octet-stream'],
])('%s is served as %s', async (path, type) => {
  const run = await newRun();
  await send('PUT', `${run}artifacts/${path}`, Buffer.from('<script>'), { 'content-type': 'image/svg+xml' });
  expect((await send('GET', `${run}artifacts/${path}`)).headers['content-type']).toBe(type);
});

test('ranges and conditions follow RFC 9110', async () => {
  const run = await newRun();
  const bytes = randomBytes(700_000);
  const path = `${run}artifacts/x.bin`;
  await send('PUT', path, bytes);
  const etag = `"${sha256(bytes)}"`;
  const partial = await send('GET', path, null, { range: 'bytes=262000-600000' });
  expect(partial.status).toBe(206);
  expect(partial.headers['content-range']).toBe('bytes 262000-600000/700000');
  expect(partial.body.equals(bytes.subarray(262_000, 600_001))).toBe(true);
  const matched = await send('GET', path, null, { range: 'bytes=-5', 'if-range': etag });
  expect([matched.status, matched.body.equals(bytes.subarray(-5))]).toEqual([206, true]);
  expect((await send('GET', path, null, { range: 'bytes=-5', 'if-range': '"x"' })).status).toBe(200);
  const outside = await send('GET', path, null, { range: 'bytes=700000-' });
  expect([outside.status, outside.headers['content-range']]).toEqual([416, 'bytes */700000']);
  expect(envelope(outside).status.code).toBe(416);
  for (const condition of [etag, '*']) {
    const unchanged = await send('GET', path, null, { 'if-none-match': condition });
    expect([unchanged.status, unchanged.headers.etag, unchanged.body.length]).toEqual([304, etag, 0]);
  }
  expect((await send('GET', path, null, { 'if-none-match': '"x"' })).status).toBe(200);
  // Other responses ignore the condition.
  expect((await send('GET', run, null, { 'if-none-match': '*' })).status).toBe(200);
});

test('steps have separate files: without a step the file that was uploaded last is returned', async () => {
  const run = await newRun();
  const path = `${run}artifacts/run_results.json`;
  const read = async (query = '') => {
    const { status, body } = await send('GET', `${path}${query}`);
    return status === 200 ? body.toString() : status;
  };
  await send('PUT', `${path}?step=1`, Buffer.from('1'));
  await send('PUT', `${path}?step=2`, Buffer.from('2'));
  await send('PUT', `${run}artifacts/catalog.json?step=3`, Buffer.from('{}'));
  expect([await read(), await read('?step=1'), await read('?step=2'), await read('?step=3')]).toEqual([
    '2',
    '1',
    '2',
    404,
  ]);
  await send('PUT', path, Buffer.from('all'));
  expect([await read(), await read('?step=1'), await read('?step=3')]).toEqual(['all', '1', 'all']);
  const { json } = await harness.call('GET', `${run}artifacts/?step=3`, { token: account.token });
  expect(json.data).toEqual(['catalog.json']);
  for (const step of ['0', 'x', '1001', '1&step=2'])
    expect((await send('PUT', `${path}?step=${step}`, Buffer.from(''))).status).toBe(400);
});

test('an upload replaces the file of its path and step, and no content remains of the previous one', async () => {
  const run = await newRun();
  const path = `${run}artifacts/x.json`;
  expect((await send('PUT', path, Buffer.from('old'))).status).toBe(201);
  expect((await send('PUT', path, Buffer.alloc(0))).status).toBe(200);
  expect((await send('GET', path)).body.length).toBe(0);
  await eventually(async () => {
    const { rows } = await harness.database.pool.query(
      'SELECT count(*)::int AS count FROM artifact_contents WHERE run_id = $1',
      [run.split('/').at(-2)],
    );
    expect(rows[0].count).toBe(1);
  });
});

test('the models of run_results.json are listed, and another format is stored without models', async () => {
  const run = await newRun();
  const path = `${run}artifacts/run_results.json`;
  const results = [
    {
      unique_id: 'model.shop.orders',
      status: 'success',
      execution_time: 1.25,
      message: 'OK',
      thread_id: 'T-1',
    },
    { unique_id: 'model.shop.refunds', status: 'error', execution_time: 0, message: 'no such table' },
  ];
  await send('PUT', `${path}?step=4`, Buffer.from(JSON.stringify({ metadata: {}, results })));
  const models = async (query = '') =>
    (await harness.call('GET', `${run}models/${query}`, { token: account.token })).json;
  const { data, extra } = await models();
  const { id } = (await harness.call('GET', run, { token: account.token })).json.data;
  expect(extra.pagination).toEqual({ total_count: 2, count: 2 });
  expect(data[0]).toEqual({ run_id: id, step: 4, name: 'orders', resource_type: 'model', ...results[0] });
  expect(data[1]).toMatchObject({ name: 'refunds', status: 'error', thread_id: null });
  expect((await models('?status=error&limit=1')).data).toHaveLength(1);
  expect((await models('?step=5')).data).toEqual([]);
  expect((await send('PUT', `${path}?step=4`, Buffer.from('no JSON'))).status).toBe(200);
  expect((await models()).data).toEqual([]);
  expect((await send('GET', path)).body.toString()).toBe('no JSON');
});

test.each(['artifacts/', 'artifacts/manifest.json', 'models/'])(
  'GET %s of a run that the account does not have is a 404',
  async (path) => {
    const other = await harness.newAccount();
    const run = (await newRun()).replace(`/${account.id}/`, `/${other.id}/`);
    expect((await harness.call('GET', `${run}${path}`, { token: other.token })).status).toBe(404);
  },
);

test('files of the latest successful run of a job are returned by the job', async () => {
  const job = await harness.newJob(account);
  const base = `/api/v2/accounts/${account.id}`;
  const path = `${base}/jobs/${job}/artifacts/`;
  expect((await send('GET', `${path}manifest.json`)).status).toBe(404);
  for (const [content, status] of [
    ['first', 'success'],
    ['second', 'success'],
    ['third', 'errored'],
  ]) {
    const body = { job_id: job, engine_version: '1' };
    const { json } = await harness.call('POST', `${base}/runs/`, { token: account.token, body });
    const run = `${base}/runs/${json.data.id}/`;
    await send('PUT', `${run}artifacts/manifest.json`, Buffer.from(content ?? ''));
    await harness.call('POST', `${run}finish/`, { token: account.token, body: { status } });
  }
  expect((await send('GET', `${path}manifest.json`)).body.toString()).toBe('second');
  expect((await harness.call('GET', path, { token: account.token })).json.data).toEqual(['manifest.json']);
});

test.each([
  '../../../etc/passwd',
  '..%2f..%2fetc%2fpasswd',
  '%2e%2e/x',
  'a/%2e%2e/b',
  '/x',
  '%2fetc%2fpasswd',
  'a//b',
  './x',
  'a%00',
  'a%5cb',
  'a%20b',
  'a;b',
  '%C3%A4',
  'x'.repeat(256),
  'a%0d%0aset-cookie:x',
])('the path %s stores and returns nothing', async (path) => {
  const run = await newRun();
  const rejected = await send('PUT', `${run}artifacts/${path}`, MANIFEST);
  expect([400, 404]).toContain(rejected.status);
  expect(envelope(rejected).data).toBeNull();
  expect((await send('GET', `${run}artifacts/${path}`)).status).toBe(404);
  expect((await harness.call('GET', `${run}artifacts/`, { token: account.token })).json.data).toEqual([]);
});

test('an invalid upload is rejected with the reason before its body is read', async () => {
  const run = await newRun();
  const path = `${run}artifacts/x.bin`;
  const reason = async (body: Buffer | null, headers: Record<string, string>) => {
    const response = await send('PUT', path, body, headers);
    return [response.status, envelope(response).status.user_message];
  };
  const compressed = await send('PUT', path, Buffer.from('x'), { 'content-encoding': 'gzip' });
  expect([compressed.status, compressed.headers['accept-encoding']]).toEqual([415, 'identity']);
  expect(envelope(compressed).status.user_message).toContain('must not be compressed');
  expect(
    (await send('PUT', `${await newRun()}artifacts/x`, MANIFEST, { 'content-encoding': 'Identity' })).status,
  ).toBe(201);
  expect(await reason(null, { 'transfer-encoding': 'chunked' })).toEqual([
    411,
    'Content-Length is required.',
  ]);
  expect(await rejectedHead(path, { 'content-length': '67108865' })).toContain(
    'The request body is too large.',
  );
  expect(await rejectedHead(path, { 'content-length': '6000000' })).toContain('accepts up to 5 MiB per file');
  expect(await rejectedHead(path, { 'content-length': '1', authorization: 'Token x' })).toContain('401');
  expect(
    await rejectedHead(`${run.replace(/\d+\/$/, '99999/')}artifacts/x`, { 'content-length': '9' }),
  ).toContain('404');
  expect((await harness.call('GET', `${run}artifacts/`, { token: account.token })).json.data).toEqual([]);
});

/** Sends only the head of an upload, and returns the response, for which no body may be needed. */
async function rejectedHead(path: string, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(harness.origin);
  const socket = connect(Number(port), hostname);
  const lines = { host: 'localhost', authorization: `Token ${account.token}`, ...headers };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`PUT ${path} HTTP/1.1\r\n${head.join('')}\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) {
    chunks.push(chunk as Buffer);
    if (Buffer.concat(chunks).includes('"data":null')) break;
  }
  return Buffer.concat(chunks).toString();
}

test('a client that asked for 100 Continue is asked for the file only if it is accepted', async () => {
  const run = await newRun();
  const expecting = { 'content-length': '7000000', expect: '100-continue' };
  expect(await rejectedHead(`${run}artifacts/x`, expecting)).not.toContain('100 Continue');
  const { hostname, port } = new URL(harness.origin);
  const response = await new Promise<string>((resolve, reject) => {
    const headers = { authorization: `Token ${account.token}`, 'content-length': 3, expect: '100-continue' };
    const request = httpRequest({ hostname, port, path: `${run}artifacts/x`, method: 'PUT', headers });
    request.on('continue', () => request.end('abc'));
    request.on('response', (received) => resolve(text(received)));
    request.on('error', reject);
    request.flushHeaders();
  });
  expect(JSON.parse(response).data.bytes).toBe(3);
});

test('an interrupted upload leaves the previous file and no content', async () => {
  const run = await newRun();
  const path = `${run}artifacts/x.bin`;
  await send('PUT', path, Buffer.from('previous'));
  const { hostname, port } = new URL(harness.origin);
  const socket = connect(Number(port), hostname);
  const head = `PUT ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Token ${account.token}\r\ncontent-length: 900000\r\n`;
  socket.write(`${head}\r\n${'x'.repeat(600_000)}`);
  const contents = async () =>
    (
      await harness.database.pool.query(
        'SELECT count(*)::int AS parts FROM artifact_contents WHERE run_id = $1',
        [run.split('/').at(-2)],
      )
    ).rows[0].parts;
  await eventually(async () => expect(await contents()).toBeGreaterThan(1));
  socket.destroy();
  await eventually(async () => expect(await contents()).toBe(1));
  expect((await send('GET', path)).body.toString()).toBe('previous');
});

test('the quota of an account is a 409 before the file is read, and a Queued run has no files', async () => {
  const other = await harness.newAccount();
  const job = await harness.newJob(other);
  const base = `/api/v2/accounts/${other.id}/runs/`;
  const body = { job_id: job, engine_version: '1' };
  const { json } = await harness.call('POST', base, { token: other.token, body });
  const path = `${base}${json.data.id}/artifacts/`;
  const headers = { authorization: `Token ${other.token}` };
  const statuses: number[] = [];
  for (let file = 1; file <= 5; file += 1)
    statuses.push((await send('PUT', `${path}${file}.bin`, Buffer.alloc(5_000_000), headers)).status);
  expect(statuses).toEqual([201, 201, 201, 201, 409]);
  expect(await rejectedHead(`${path}6.bin`, { ...headers, 'content-length': '5000000' })).toContain(
    'The artifacts of an account take up to 20 MiB, which are used.',
  );
  await harness.database.pool.query(`UPDATE runs SET status = 'Queued' WHERE account_id = $1`, [other.id]);
  expect((await send('PUT', `${path}7.bin`, Buffer.alloc(1), headers)).status).toBe(409);
});

test('of concurrent first uploads of a path one content remains', async () => {
  const path = `${await newRun()}artifacts/x.bin`;
  expect(await sendAtOnce([path, path], 10)).toEqual([200, 201]);
  await eventually(async () => expect(await objectsOf(path)).toBe(1));
});

test('concurrent uploads cannot exceed the quota together, and the rejected one leaves no content', async () => {
  const run = await newRun();
  const { pool } = harness.database;
  await pool.query(
    `INSERT INTO artifacts (account_id, run_id, path, step, object_id, bytes, sha256, run_created_at)
     SELECT $1, 1, 'large', 0, gen_random_uuid(), 20 * 1024 * 1024 - 60000 - sum(bytes) - 1024 * count(*), '', now()
     FROM artifacts WHERE account_id = $1`,
    [account.id],
  );
  try {
    expect(await sendAtOnce([`${run}artifacts/a`, `${run}artifacts/b`], 40_000)).toEqual([201, 409]);
    await eventually(async () => expect(await objectsOf(run)).toBe(1));
  } finally {
    await pool.query('DELETE FROM artifacts WHERE account_id = $1 AND run_id = 1', [account.id]);
  }
});

test('uploads need the permission to report runs, and from a session the origin of the console', async () => {
  const run = await newRun();
  const path = `${run}artifacts/x.json`;
  const reader = await harness.newToken(account, ['member']);
  expect((await send('PUT', path, MANIFEST, { authorization: `Token ${reader}` })).status).toBe(403);
  const session = await harness.signIn(await harness.newUser(account, 'developer', ['account_admin']));
  const call = (headers: Record<string, string>) =>
    checkedFetch(`${harness.origin}${path}`, { method: 'PUT', body: '{}', headers });
  expect((await call({ ...session, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await call(session)).status).toBe(201);
  expect((await send('GET', path, null, { authorization: `Token ${reader}` })).status).toBe(200);
});

test('a credential that is revoked while a file arrives stores nothing', async () => {
  const path = `${await newRun()}artifacts/x.bin`;
  const token = await harness.newToken(account, ['job_runner']);
  const revoke = () =>
    harness.database.pool.query('UPDATE service_tokens SET revoked_at = now() WHERE token_hash = $1', [
      hashCredential(token),
    ]);
  expect(await sendInTwo(path, { authorization: `Token ${token}` }, revoke)).toBe(401);
  await eventually(async () => expect(await objectsOf(path)).toBe(0));
  expect((await send('GET', path)).status).toBe(404);
});

test('a keep-alive connection is usable after a rejected upload whose body it has sent', async () => {
  const run = await newRun();
  const { hostname, port } = new URL(harness.origin);
  const socket = connect(Number(port), hostname);
  const auth = `host: x\r\nauthorization: Token ${account.token}\r\n`;
  socket.write(
    `PUT ${run}artifacts/a..b HTTP/1.1\r\n${auth}content-length: 300000\r\n\r\n${'x'.repeat(300_000)}`,
  );
  socket.write(`GET ${run}artifacts/ HTTP/1.1\r\n${auth}\r\n`);
  let received = '';
  for await (const chunk of socket) {
    received += chunk;
    if (received.includes('"data":[]')) break;
  }
  expect(received).toMatch(/^HTTP\/1\.1 400 [\s\S]*HTTP\/1\.1 200 /);
});

test('a download whose content is deleted meanwhile ends with a closed connection', async () => {
  const run = await newRun();
  const path = `${run}artifacts/x.bin`;
  await send('PUT', path, randomBytes(900_000));
  await harness.database.pool.query('DELETE FROM artifact_contents WHERE run_id = $1 AND part > 1', [
    run.split('/').at(-2),
  ]);
  await expect(send('GET', path)).rejects.toThrow('aborted');
});

test('the current content is returned of a file that is replaced after its download was requested', async () => {
  const path = `${await newRun()}artifacts/x.bin`;
  await send('PUT', path, Buffer.from('old'));
  const client = await harness.database.pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('LOCK TABLE artifact_contents IN ACCESS EXCLUSIVE MODE');
    const download = send('GET', path);
    const waiting = `SELECT FROM pg_locks WHERE relation = 'artifact_contents'::regclass AND NOT granted`;
    await eventually(async () => expect((await client.query(waiting)).rowCount).toBe(1));
    const replacement = [path.split('/')[6], randomUUID()];
    await client.query(
      "UPDATE artifact_contents SET object_id = $2, content = 'new' WHERE run_id = $1",
      replacement,
    );
    await client.query('UPDATE artifacts SET object_id = $2 WHERE run_id = $1', replacement);
    await client.query('COMMIT');
    expect((await download).body.toString()).toBe('new');
  } finally {
    client.release();
  }
});

test('a runner whose run another one has claimed stores no file, and an upload renews the lease', async () => {
  const path = `/api/v2/accounts/${account.id}`;
  await harness.call('POST', `${path}/jobs/${jobId}/run/`, { token: account.token });
  const { json } = await harness.call('POST', `${path}/runs/claim/`, { token: account.token });
  const { run, lease_token: token, lease_expires_at: expiresAt } = json.data;
  const file = `${path}/runs/${run.id}/artifacts/manifest.json`;
  expect((await send('PUT', file, MANIFEST, { 'lease-token': 'older' })).status).toBe(409);
  expect((await send('GET', file)).status).toBe(404);
  expect((await send('PUT', file, MANIFEST, { 'lease-token': token })).status).toBe(201);
  const { rows } = await harness.database.pool.query(
    'SELECT lease_expires_at > $1 AS renewed FROM run_requests WHERE run_id = $2',
    [expiresAt, run.id],
  );
  expect(rows).toEqual([{ renewed: true }]);
  const late = `${path}/runs/${run.id}/artifacts/late.bin`;
  await harness.database.pool.query(`DELETE FROM artifact_contents WHERE run_id = $1`, [run.id]);
  const headers = { authorization: `Token ${account.token}`, 'lease-token': token };
  const loseLease = () =>
    harness.database.pool.query(`UPDATE run_requests SET lease_token_hash = '' WHERE run_id = $1`, [run.id]);
  expect(await sendInTwo(late, headers, loseLease)).toBe(409);
  await eventually(async () => expect(await objectsOf(late)).toBe(0));
});
