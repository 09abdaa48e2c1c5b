import { createHash, type Hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  eventually,
  missingS3Server,
  queueBackends,
  type S3Server,
  startS3Server,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { callApi, openSystem, type System } from './observability/system.ts';
import { type RunningService, startService } from './services.ts';

const FILE_BYTES = 64 * 1024 * 1024;
/** Limit of the memory of management (docs/adr/0069-artifact-store.md). */
const MEMORY_MB_MAX = 150;
const BUCKET = 'artifacts';

interface World {
  system: System;
  management: RunningService;
}

/** Peak of the resident memory of a process in MB. */
function peakMemoryMb({ pid }: RunningService): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1_024;
}

/** Yields a file of varying content without holding it in memory. */
function* fileContent(bytes: number, seed: number): Generator<Buffer, void> {
  const block = Buffer.alloc(65_536);
  for (let offset = 0; offset < bytes; offset += block.length) {
    block.fill(`${seed} ${offset} `);
    yield Buffer.from(block.subarray(0, Math.min(block.length, bytes - offset)));
  }
}

function hashOf(bytes: number, seed: number): string {
  const hash = createHash('sha256');
  for (const block of fileContent(bytes, seed)) hash.update(block);
  return hash.digest('hex');
}

interface UploadResult {
  status: number;
  retryAfter: string | undefined;
  body: string;
}

function put(
  { system, management }: World,
  path: string,
  bytes: number,
  seed: number,
): Promise<UploadResult> {
  const headers = { authorization: `Token ${system.token}`, 'content-length': bytes };
  return new Promise((resolve, reject) => {
    const request = httpRequest(management.url + path, { method: 'PUT', headers }, (response) => {
      const { statusCode: status = 0 } = response;
      text(response).then(
        (body) => resolve({ status, retryAfter: response.headers['retry-after'], body }),
        reject,
      );
    });
    request.on('error', reject);
    // A rejected upload ends before the file does.
    pipeline(Readable.from(fileContent(bytes, seed)), request).catch(() => undefined);
  });
}

/** Uploads as a client that respects Retry-After does. */
async function putPatiently(world: World, path: string, bytes: number, seed: number): Promise<number> {
  for (let rejections = 0; ; rejections += 1) {
    const { status, retryAfter, body } = await put(world, path, bytes, seed).catch(() => DISCONNECTED);
    if (status === 201) return rejections;
    if (retryAfter === undefined) throw new Error(`${status}: ${body}`);
    await wait(1_000 * Number(retryAfter));
  }
}

/** A connection that was closed while a rejected client was still writing. */
const DISCONNECTED: UploadResult = { status: 0, retryAfter: '1', body: '' };

async function getHash({ system, management }: World, path: string): Promise<string> {
  const headers = { authorization: `Token ${system.token}` };
  const hash: Hash = createHash('sha256');
  const response = await fetch(management.url + path, { headers });
  if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
  for await (const chunk of response.body) hash.update(chunk);
  return hash.digest('hex');
}

async function startRun({ system, management }: World): Promise<string> {
  const base = `/v2/accounts/${system.account.id}/runs/`;
  const body = { job_id: system.account.jobs[0]?.id, engine_version: '1' };
  const { status, data } = await callApi(system, management, { method: 'POST', path: base, body });
  expect(status).toBe(201);
  return `/api${base}${data.id}/`;
}

async function openWorld(settings: Record<string, string>): Promise<World> {
  const backend = queueBackends().at(-1);
  if (!backend) throw new Error('there is no queue back end');
  const system = await openSystem(backend);
  const environment = { DATABASE_URL: system.databaseUrl, QUEUE_URL: system.queueUrl, ...settings };
  const management = await startService('management', environment, { asInProduction: true });
  system.onClose(() => management.stop());
  return { system, management };
}

/** @param open starts the services on the store */
function testLargeFiles(open: () => World): void {
  test('a file of 64 MB is uploaded and downloaded, in little memory', async () => {
    const world = open();
    const run = await startRun(world);
    const path = `${run}artifacts/large.bin`;
    expect((await put(world, path, FILE_BYTES, 1)).status).toBe(201);
    expect(await getHash(world, path)).toBe(hashOf(FILE_BYTES, 1));
    const peakMb = peakMemoryMb(world.management);
    process.stderr.write(`peak memory of management: ${Math.round(peakMb)} MB\n`);
    expect(peakMb).toBeLessThan(MEMORY_MB_MAX);
    expect((await put(world, `${run}artifacts/larger.bin`, FILE_BYTES + 1, 1)).status).toBe(413);
  });

  test('100 concurrent uploads are all stored, some after a rejection with Retry-After', async () => {
    const world = open();
    const run = await startRun(world);
    const numbers = Array.from({ length: 100 }, (_, number) => number);
    const path = (number: number) => `${run}artifacts/${number}.bin`;
    const rejections = await Promise.all(
      numbers.map((number) => putPatiently(world, path(number), 1_000_000, number)),
    );
    process.stderr.write(`rejections of 100 uploads: ${rejections.reduce((sum, count) => sum + count)}\n`);
    for (const number of [0, 50, 99])
      expect(await getHash(world, path(number))).toBe(hashOf(1_000_000, number));
    process.stderr.write(`peak memory with 100 uploads: ${Math.round(peakMemoryMb(world.management))} MB\n`);
  });
}

describe('artifacts in a folder', () => {
  let world: World;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runhook-artifacts-'));
    world = await openWorld({ ARTIFACTS_URL: `file://${folder}` });
  });
  afterAll(async () => {
    await world.system.close();
    await rm(folder, { recursive: true, force: true });
  });
  testLargeFiles(() => world);
});

const missing = missingS3Server();
if (missing !== null) test.skip(`artifacts in a bucket: ${missing}`, () => undefined);

(missing === null ? describe : describe.skip)('artifacts in a bucket', () => {
  let server: S3Server;
  let proxy: TcpProxy;
  let world: World;
  beforeAll(async () => {
    server = await startS3Server();
    await server.createBucket(BUCKET);
    proxy = await startTcpProxy(server.endpoint);
    world = await openWorld({
      ARTIFACTS_URL: `s3://${BUCKET}/runhook`,
      ARTIFACTS_S3_ENDPOINT: proxy.url,
      ARTIFACTS_S3_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
    });
  });
  afterAll(async () => {
    await world.system.close();
    await proxy.close();
    await server.stop();
  });
  testLargeFiles(() => world);

  test('while S3 is unavailable, uploads and the mark are a 503 without effect, and a repeat completes', async () => {
    const { system, management } = world;
    const run = await startRun(world);
    const withoutFiles = await startRun(world);
    const path = `${run}artifacts/manifest.json`;
    expect((await put(world, path, 1_000, 3)).status).toBe(201);
    const call = (suffix: string, of = run, body?: object) =>
      callApi(system, management, {
        method: 'POST',
        path: `${of.replace('/api', '')}${suffix}`,
        ...(body && { body }),
      });
    const completed = async () => {
      const { rows } = await system.database.pool.query(
        `SELECT count(*)::int AS count FROM events WHERE event_type = 'job.run.completed'`,
      );
      return rows[0].count;
    };
    expect((await call('finish/', run, { status: 'success' })).status).toBe(200);
    for (const outage of [() => proxy.cut(), async () => proxy.stall()]) {
      await outage();
      const rejected = await put(world, path, 200_000, 4);
      expect([rejected.status, rejected.retryAfter]).toEqual([503, '5']);
      expect(rejected.body).toContain('The artifact store is unavailable.');
      expect((await call('artifacts/')).status).toBe(503);
      expect((await call('artifacts/', withoutFiles)).status).toBe(200);
      expect(await completed()).toBe(0);
      await proxy.restore();
    }
    expect(await getHash(world, path)).toBe(hashOf(1_000, 3));
    await eventually(async () => expect((await put(world, path, 200_000, 4)).status).toBe(200));
    expect((await call('artifacts/')).status).toBe(200);
    expect(await completed()).toBe(1);
  });
});
