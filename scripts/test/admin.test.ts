import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, testEncryptionKeysText } from '../../packages/testing/src/index.ts';
import { adminEnvironment } from '../src/home.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'runhook-admin-'));
});

afterEach(() => rm(home, { recursive: true, force: true }));

const writeJsonFile = (name: string, value: object) => writeFile(join(home, name), JSON.stringify(value));

describe('npm run admin', () => {
  const databaseUrl = 'postgres://runhook_management:p@127.0.0.1:54329/runhook';
  const encryptionKeys = 'local:a2V5';

  test('uses the database, the queue and the keys of the running npm start', async () => {
    await writeJsonFile('dev.json', {
      databaseUrl: 'postgres://superuser:p@127.0.0.1:54329/runhook',
      managementDatabaseUrl: databaseUrl,
      queueUrl: 'redis://127.0.0.1:6400',
    });
    await writeJsonFile('secrets.json', { encryptionKeys });
    expect(adminEnvironment(root, { RUNHOOK_HOME: home })).toEqual({
      DATABASE_URL: databaseUrl,
      QUEUE_URL: 'redis://127.0.0.1:6400',
      ENCRYPTION_KEYS: encryptionKeys,
    });
  });

  test('uses the login of management for a queue in the database', async () => {
    const superuserUrl = 'postgres://superuser:p@127.0.0.1:54329/runhook';
    await writeJsonFile('dev.json', {
      databaseUrl: superuserUrl,
      managementDatabaseUrl: databaseUrl,
      queueUrl: superuserUrl,
    });
    expect(adminEnvironment(root, { RUNHOOK_HOME: home })).toEqual({
      DATABASE_URL: databaseUrl,
      QUEUE_URL: databaseUrl,
    });
  });

  test('does not replace variables that are set', async () => {
    await writeJsonFile('dev.json', { managementDatabaseUrl: databaseUrl });
    await writeJsonFile('secrets.json', { encryptionKeys });
    const environment = { RUNHOOK_HOME: home, DATABASE_URL: 'postgres://elsewhere/db' };
    expect(adminEnvironment(root, environment)).toEqual({});
    expect(adminEnvironment(root, { RUNHOOK_HOME: home, ENCRYPTION_KEYS: 'own:a2V5' })).toEqual({
      DATABASE_URL: databaseUrl,
    });
  });

  test('adds no variables when npm start is not running', async () => {
    await writeJsonFile('secrets.json', { encryptionKeys });
    expect(adminEnvironment(root, { RUNHOOK_HOME: home })).toEqual({});
  });

  test('writes only the result to standard output', async () => {
    const testDatabase = await createTestDatabase();
    try {
      await writeJsonFile('dev.json', { managementDatabaseUrl: testDatabase.managementUrl });
      await writeJsonFile('secrets.json', { encryptionKeys: testEncryptionKeysText });
      const made = await admin('user', 'create', '--email', 'ada@example.com', '--name', 'Ada', '--json');
      expect(JSON.parse(made)).toMatchObject({ email: 'ada@example.com', api_key: expect.any(String) });
    } finally {
      await testDatabase.drop();
    }
  });
});

function admin(...args: string[]): Promise<string> {
  const { DATABASE_URL, ENCRYPTION_KEYS, ...inherited } = process.env;
  const env = { ...inherited, RUNHOOK_HOME: home };
  const child = spawn(process.execPath, [join(root, 'scripts', 'admin.mjs'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve(stdout) : reject(new Error(`ended with ${code}`))));
  });
}
