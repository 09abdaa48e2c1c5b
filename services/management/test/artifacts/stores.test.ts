import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { GENEROUS_TIMEOUTS, type Harness, startHarness, type TestAccount } from '../harness.ts';

let folder: string;
let withFolder: Harness;
let withoutStore: Harness;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runhook-artifacts-'));
  process.env.AWS_ACCESS_KEY_ID ??= 'key';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'secret';
  withFolder = await startHarness(
    { artifactsUrl: { kind: 'file', folder } },
    { timeouts: { ...GENEROUS_TIMEOUTS, bodyMs: 300 } },
  );
  withoutStore = await startHarness({
    artifactsUrl: { kind: 's3', bucket: 'bucket', prefix: '' },
    artifactsS3Endpoint: 'http://127.0.0.1:1',
    artifactsS3Region: 'us-east-1',
  });
});
afterAll(async () => {
  await withFolder.close();
  await withoutStore.close();
  await rm(folder, { recursive: true, force: true });
});

async function newRun(harness: Harness): Promise<{ account: TestAccount; id: number; path: string }> {
  const account = await harness.newAccount();
  const base = `/api/v2/accounts/${account.id}/runs/`;
  const body = { job_id: await harness.newJob(account), engine_version: '1' };
  const { json } = await harness.call('POST', base, { token: account.token, body });
  const path = `${base}${json.data.id}/`;
  await harness.call('POST', `${path}finish/`, { token: account.token, body: { status: 'success' } });
  return { account, id: json.data.id, path };
}

const userMessage = (json: { status: { user_message: string } }) => json.status.user_message;

test('a file whose content is lost is a 404 that says so, and its ingestion a 409 until it is uploaded again', async () => {
  const { account, path } = await newRun(withFolder);
  const { token } = account;
  const put = (content: string) =>
    withFolder.call('PUT', `${path}artifacts/manifest.json`, { token, body: content });
  expect((await put('{}')).status).toBe(201);
  await rm(join(folder, String(account.id)), { recursive: true });
  const lost = await withFolder.call('GET', `${path}artifacts/manifest.json`, { token });
  expect([lost.status, userMessage(lost.json)]).toEqual([
    404,
    'The content of manifest.json is missing in the artifact store.',
  ]);
  const rejected = await withFolder.call('POST', `${path}artifacts/`, { token });
  expect([rejected.status, userMessage(rejected.json)]).toEqual([
    409,
    'The content of manifest.json is missing in the artifact store. Upload it again.',
  ]);
  expect((await put('{}')).status).toBe(200);
  expect((await withFolder.call('POST', `${path}artifacts/`, { token })).status).toBe(200);
});

test('a client that is slower than the pace gets a 408, and nothing remains in the store', async () => {
  const { account, id, path } = await newRun(withFolder);
  const { hostname, port } = new URL(withFolder.origin);
  const socket = connect(Number(port), hostname);
  const head = [
    `PUT ${path}artifacts/slow.bin HTTP/1.1`,
    'host: x',
    `authorization: Token ${account.token}`,
    'content-length: 500000',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${'x'.repeat(1_000)}`);
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 [\s\S]*The request took too long to arrive\./);
  expect(await readdir(join(folder, String(account.id), String(id))).catch(() => [])).toEqual([]);
});

test('while the store is unavailable, uploads and the ingestion of a run with files are a 503 without effect', async () => {
  const { account, id, path } = await newRun(withoutStore);
  const { token } = account;
  const { pool } = withoutStore.database;
  const events = async () =>
    (await pool.query('SELECT count(*)::int AS count FROM events WHERE account_id = $1', [account.id]))
      .rows[0].count;
  const before = await events();
  const upload = await withoutStore.call('PUT', `${path}artifacts/x.json`, { token, body: '{}' });
  expect([upload.status, userMessage(upload.json), upload.headers.get('retry-after')]).toEqual([
    503,
    'The artifact store is unavailable.',
    '5',
  ]);
  expect((await withoutStore.call('GET', `${path}artifacts/`, { token })).json.data).toEqual([]);
  await pool.query(
    `INSERT INTO artifacts (account_id, run_id, path, step, object_id, bytes, sha256, run_created_at)
     VALUES ($1, $2, 'x.json', 0, $3, 2, sha256('{}'), now())`,
    [account.id, id, randomUUID()],
  );
  for (const headers of [{}, { 'idempotency-key': 'mark' }])
    expect((await withoutStore.call('POST', `${path}artifacts/`, { token, headers })).status).toBe(503);
  expect((await withoutStore.call('GET', `${path}artifacts/x.json`, { token })).status).toBe(503);
  expect(await events()).toBe(before);
  const connection = new Agent({ keepAlive: true, maxSockets: 1 });
  const statuses: (number | undefined)[] = [];
  // The connection remains usable, though the handler has not read the whole body.
  for (const length of [300_000, 2, 300_000]) {
    const options = {
      agent: connection,
      method: 'PUT',
      headers: { authorization: `Token ${token}`, 'content-length': length },
    };
    const request = httpRequest(`${withoutStore.origin}${path}artifacts/x.json`, options);
    request.end(Buffer.alloc(length));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await text(response);
    statuses.push(response.statusCode);
  }
  connection.destroy();
  expect(statuses).toEqual([503, 503, 503]);
  await pool.query('DELETE FROM artifacts WHERE account_id = $1', [account.id]);
  expect((await withoutStore.call('POST', `${path}artifacts/`, { token })).status).toBe(200);
  expect(await events()).toBe(before + 1);
});
