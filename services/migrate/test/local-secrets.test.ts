import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseEncryptionKeys } from '@runhook/database';
import { createLocalSecrets } from '../src/local-secrets.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runhook-secrets-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const read = (name: string) => readFile(join(folder, name), 'utf8');

test('the first start creates the passwords of the database, the URLs with them and an encryption key, in files that every user can only read', async () => {
  expect(createLocalSecrets(folder)).toEqual([
    'database/password',
    'database/url',
    'management/url',
    'dispatcher/url',
    'service/encryption-keys',
  ]);
  const password = await read('database/password');
  expect(password).toMatch(/^[\w-]{32}$/);
  expect(await read('database/url')).toBe(`postgres://runhook:${password}@postgres:5432/runhook`);
  for (const service of ['management', 'dispatcher']) {
    const url = new URL(await read(`${service}/url`));
    expect(url.href).toBe(`postgres://runhook_${service}:${url.password}@postgres:5432/runhook`);
    expect(url.password).toMatch(/^[\w-]{32}$/);
    expect(url.password).not.toBe(password);
  }
  expect(parseEncryptionKeys(await read('service/encryption-keys'))).toHaveLength(1);
  expect((await stat(join(folder, 'database/password'))).mode & 0o777).toBe(0o444);
});

test('a later start creates no secrets, and leaves the existing ones unchanged', async () => {
  createLocalSecrets(folder);
  const before = await Promise.all([read('database/url'), read('service/encryption-keys')]);
  expect(createLocalSecrets(folder)).toEqual([]);
  expect(await Promise.all([read('database/url'), read('service/encryption-keys')])).toEqual(before);
});
