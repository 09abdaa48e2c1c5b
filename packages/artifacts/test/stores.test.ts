import { once } from 'node:events';
import { mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Database, openDatabase } from '@runhook/database';
import { createTestDatabase, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { deleteOrphans } from '../src/delete-orphans.ts';
import { createFileStore } from '../src/file-store.ts';
import { isArtifactPath, parseArtifactsUrl } from '../src/index.ts';
import { createS3Store } from '../src/s3-store.ts';
import { objectName, parseObjectName } from '../src/store.ts';
import { createTableStore } from '../src/table-store.ts';
import { inChunks, newKey, testStore } from './store-conformance.ts';

let testDatabase: TestDatabase;
let database: Database;
let folder: string;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  // The owner has the privileges of both services.
  database = openDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  folder = await mkdtemp(join(tmpdir(), 'runhook-artifacts-'));
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
  await rm(folder, { recursive: true, force: true });
});

describe('the store in a table', () => testStore(() => createTableStore(database.pool)));
describe('the store in a folder', () => testStore(() => createFileStore(folder)));

test('a folder that cannot be written is an unavailable store', async () => {
  const file = join(folder, 'a-file');
  await writeFile(file, '');
  const store = createFileStore(file);
  await expect(store.put(newKey(), inChunks(new Uint8Array(1)), 1)).rejects.toMatchObject({
    code: 'artifact_store_unavailable',
  });
});

test('a deleted run leaves no folder', async () => {
  const store = createFileStore(folder);
  const key = newKey(77, 8);
  await store.put(key, inChunks(new Uint8Array(1)), 1);
  await store.delete([key]);
  expect(await readdir(folder)).not.toContain('77');
});

test('an S3 server that cannot be reached is an unavailable store', async () => {
  const store = createS3Store({
    bucket: 'bucket',
    prefix: '',
    endpoint: 'http://127.0.0.1:1',
    region: 'us-east-1',
  });
  process.env.AWS_ACCESS_KEY_ID ??= 'key';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'secret';
  const results = await Promise.allSettled([
    store.put(newKey(), inChunks(new Uint8Array(100_000)), 100_000),
    store.open(newKey(), null),
    store.exists(newKey()),
    store.delete([newKey()]),
  ]);
  for (const result of results)
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'artifact_store_unavailable' } });
  await store.close();
});

test('a silent S3 server is an unavailable store, and a silent client is not', async () => {
  process.env.AWS_ACCESS_KEY_ID ??= 'key';
  process.env.AWS_SECRET_ACCESS_KEY ??= 'secret';
  const server = createServer((request, response) => {
    if (request.url?.includes('/1/7/')) request.resume().on('end', () => response.end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const silenceMaxMs = 300;
  const store = createS3Store({ bucket: 'b', prefix: '', endpoint, region: 'us-east-1', silenceMaxMs });
  async function* slowly() {
    yield Buffer.alloc(70_000);
    await setTimeout(3 * silenceMaxMs);
    yield Buffer.alloc(30_000);
  }
  await store.put(newKey(1, 7), slowly(), 100_000);
  const silent = newKey(1, 8);
  const results = await Promise.allSettled([
    store.put(silent, inChunks(new Uint8Array(100_000)), 100_000),
    // More than the connection buffers.
    store.put(silent, inChunks(new Uint8Array(30_000_000)), 30_000_000),
    store.open(silent, null),
    store.exists(silent),
  ]);
  for (const result of results)
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'artifact_store_unavailable' } });
  await store.close();
  server.closeAllConnections();
  server.close();
});

test('deletes objects without a row after a day, the rests of interrupted writes included', async () => {
  const orphanFolder = await mkdtemp(join(folder, 'orphans-'));
  const store = createFileStore(orphanFolder);
  const [named, orphan, young] = [newKey(), newKey(), newKey()];
  for (const key of [named, orphan, young]) await store.put(key, inChunks(new Uint8Array(3)), 3);
  const interrupted = `${join(orphanFolder, objectName(newKey()))}.part`;
  await writeFile(interrupted, '');
  const old = new Date(Date.now() - 2 * 86_400_000);
  for (const key of [named, orphan]) await utimes(join(orphanFolder, objectName(key)), old, old);
  await utimes(interrupted, old, old);
  await writeFile(join(orphanFolder, 'README'), 'foreign');
  // Cannot be read: these links name themselves.
  await symlink('lost+found', join(orphanFolder, 'lost+found'));
  await symlink('.snapshot', join(orphanFolder, '1', '.snapshot'));
  await database.pool.query(
    `INSERT INTO artifacts (account_id, run_id, path, step, object_id, bytes, sha256, run_created_at)
     VALUES (1, 7, 'a', 0, $1, 3, '', now())`,
    [named.objectId],
  );
  expect(await deleteOrphans(store, database.pool, { nowMs: Date.now() })).toBe(2);
  expect(await store.exists(named)).toBe(true);
  expect(await store.exists(young)).toBe(true);
  expect(await store.exists(orphan)).toBe(false);
  expect(await readdir(orphanFolder)).toContain('README');
});

test('the table lists an object whose first part is missing', async () => {
  const store = createTableStore(database.pool);
  const key = newKey(3, 4);
  await store.put(key, inChunks(new Uint8Array(600_000)), 600_000);
  await database.pool.query('DELETE FROM artifact_contents WHERE object_id = $1 AND part = 0', [
    key.objectId,
  ]);
  const listed: string[] = [];
  for await (const page of store.list()) listed.push(...page.map(({ objectId }) => objectId));
  expect(listed.filter((objectId) => objectId === key.objectId)).toHaveLength(1);
});

test('names of objects are parsed exactly', () => {
  const key = newKey(12, 345);
  expect(parseObjectName(objectName(key))).toEqual(key);
  for (const name of ['', '1/2', `x/${objectName(key)}`, `${objectName(key)}x`, '../../etc/passwd'])
    expect(parseObjectName(name)).toBeNull();
});

test.each([
  ['s3://bucket', { kind: 's3', bucket: 'bucket', prefix: '' }],
  ['s3://bucket/', { kind: 's3', bucket: 'bucket', prefix: '' }],
  ['s3://my.bucket-1/some/prefix', { kind: 's3', bucket: 'my.bucket-1', prefix: 'some/prefix/' }],
  ['file:///var/lib/artifacts', { kind: 'file', folder: '/var/lib/artifacts' }],
])('ARTIFACTS_URL=%s is accepted', (text, location) => {
  expect(parseArtifactsUrl(text)).toEqual(location);
});

test.each([
  '',
  'https://bucket',
  's3://',
  's3://B',
  's3://bucket/a b',
  'file://host/x',
  'file:relative',
  '/x',
])('ARTIFACTS_URL=%s is rejected', (text) => {
  expect(() => parseArtifactsUrl(text)).toThrow(/^must /);
});

test.each(['manifest.json', 'a/b/c-1_2.sql', '.hidden', 'a'.repeat(255)])('%s is a path', (path) => {
  expect(isArtifactPath(path)).toBe(true);
});

test.each([
  '',
  '/a',
  'a/',
  'a//b',
  '.',
  '..',
  'a/../b',
  'a/./b',
  'a..b',
  'a\\b',
  'a b',
  'a\0',
  'ä',
  'a%2fb',
  'a'.repeat(256),
])('%j is not a path', (path) => {
  expect(isArtifactPath(path)).toBe(false);
});
