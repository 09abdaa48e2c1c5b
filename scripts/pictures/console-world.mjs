import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bootstrap } from '../build/bootstrap.mjs';
import { step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { startTestServers } from '../test/run/servers.mjs';
import { seedDemoData } from './demo-data.mjs';

/**
 * Runs `use` with both services, a day of realistic data, an endpoint and a Chromium, and closes them afterwards.
 *
 * @param {(world: { management: string, demo: object, receiver: object, testing: object, chromium: object,
 * executablePath: string, chromiumArgs: string[], opened: (close: () => unknown) => void }) => Promise<void>} use `opened`
 * registers a function that closes a resource of `use`
 */
export async function withConsoleWorld(use) {
  await bootstrap();
  const databasePackage = await import('../../packages/database/dist/index.js');
  const { openPrismaDatabase } = await import('../../packages/database/dist/open-prisma.js');
  const contract = await import('../../packages/contract/dist/index.js');
  const testing = await import('../../packages/testing/dist/index.js');
  const { chromium } = createRequire(join(root, 'e2e', 'package.json'))('playwright-core');
  const closers = [];
  const opened = (closer) => closers.unshift(closer);
  try {
    const executablePath = testing.findChromium();
    if (executablePath === null) throw new Error(testing.NO_CHROMIUM);
    const folder = await mkdtemp(join(tmpdir(), 'runhook-console-world-'));
    opened(() => rm(folder, { recursive: true, force: true }));
    await chmod(folder, 0o711);
    const servers = await startTestServers({ folder, runId: `${process.pid}` });
    opened(() => servers.close());
    Object.assign(process.env, servers.environment);
    const testDatabase = await testing.createTestDatabase();
    opened(() => testDatabase.drop());
    const database = openPrismaDatabase({ url: testDatabase.url });
    opened(() => database.close());
    const receiver = await testing.startReceiver();
    opened(() => receiver.close());
    const demo = await step('seeding', () =>
      seedDemoData({ database, contract, testing, databasePackage, receiverUrl: receiver.url }),
    );
    const start = (name) =>
      startService(name, { databaseUrl: testDatabase.url, keys: testing.testEncryptionKeysText, opened });
    const [management] = await Promise.all(['management', 'dispatcher'].map(start));
    const chromiumArgs = ['--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
    await use({ management, demo, receiver, testing, chromium, executablePath, chromiumArgs, opened });
  } finally {
    for (const close of closers) await close();
  }
}

/** Returns the URL of the service. */
async function startService(name, { databaseUrl, keys, opened }) {
  const child = spawn(process.execPath, [join(root, 'services', name, 'dist', 'main.js')], {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      QUEUE_URL: databaseUrl,
      ENCRYPTION_KEYS: keys,
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      RETRY_BASE_DELAY_MS: '700',
      HOST: '127.0.0.1',
      PORT: '0',
      OPERATIONS_PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  opened(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const { port } = line.startsWith('{') ? JSON.parse(line) : {};
    if (port !== undefined) {
      child.stdout.resume();
      return `http://127.0.0.1:${port}`;
    }
  }
  throw new Error(`${name} ended before it was ready`);
}

/** Signs in and returns the `Cookie` header of the session. */
export async function signIn(management, { email, password }) {
  const response = await fetch(`${management}/api/v3/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  });
  if (response.status !== 201) throw new Error(`signing in returned ${response.status}`);
  return response.headers.getSetCookie()[0].split(';')[0];
}
