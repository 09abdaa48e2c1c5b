import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readStartCommand } from '@runhook/embedded';
import { createTestDatabase, type TestDatabase, testEncryptionKeysText } from '@runhook/testing';

const checkout = fileURLToPath(new URL('..', import.meta.url));
let database: TestDatabase;
let holder: ReturnType<typeof createServer>;
let takenPort: number;

beforeAll(async () => {
  database = await createTestDatabase();
  holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  ({ port: takenPort } = holder.address() as { port: number });
});

afterAll(async () => {
  holder.close();
  await database.drop();
});

const changeUrl = (part: 'username' | 'pathname' | 'port', value: string) => {
  const url = new URL(database.url);
  url[part] = value;
  return { DATABASE_URL: url.href };
};

async function start(name: 'management' | 'dispatcher' | 'migrate', environment: Record<string, string>) {
  const main = name === 'migrate' ? 'services/migrate/dist/main.js' : readStartCommand(name).program;
  const child = spawn(process.execPath, [join(checkout, main)], {
    env: {
      ENCRYPTION_KEYS: testEncryptionKeysText,
      HOST: '127.0.0.1',
      PORT: '0',
      OPERATIONS_PORT: '0',
      DATABASE_URL: database.url,
      QUEUE_URL: database.url,
      MIGRATE_WAIT_SECONDS: '0',
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [code] = await once(child, 'close');
  return [code, stderr];
}

test('a service that cannot start prints the reason in one line, and exits with 1', async () => {
  const port = `Cannot listen on 127.0.0.1:${takenPort}: another process listens there already.\n`;
  const rejectedUser = /^The database rejects the user or the password of DATABASE_URL: .*nobody.*\.\n$/;
  const missingDatabaseUrl = /^The server of DATABASE_URL has no database of that name: .*\.\n$/;
  const unreachableUrl = 'The database of DATABASE_URL cannot be reached (ECONNREFUSED).\n';
  const unknownUserUrl = changeUrl('username', 'nobody');
  const unknownHostUrl = changeUrl('pathname', '/nowhere');
  const closedPortUrl = changeUrl('port', '1');
  for (const [name, environment, output] of [
    ['management', { OPERATIONS_PORT: String(takenPort) }, port],
    ['dispatcher', { PORT: String(takenPort) }, port],
    ['management', unknownUserUrl, expect.stringMatching(rejectedUser)],
    ['dispatcher', unknownUserUrl, expect.stringMatching(rejectedUser)],
    ['migrate', unknownHostUrl, expect.stringMatching(missingDatabaseUrl)],
    ['migrate', closedPortUrl, unreachableUrl],
  ] as const)
    expect([name, ...(await start(name, environment))]).toEqual([name, 1, output]);
});
