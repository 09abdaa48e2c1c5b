import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, expect, test } from '@jest/globals';
import { verify } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import {
  countDispatchedEvents,
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  queueBackends,
  seedAccount,
  startReceiver,
  testEncryptionKeysText,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { type ServiceInProcess, startServiceInProcess } from './services-in-process.ts';

const ADMIN = fileURLToPath(new URL('../services/management/dist/admin.js', import.meta.url));
const SERVICES = ['management', 'dispatcher'] as const;
/** Number of calls in each step. */
const WEBHOOKS = 2;
const RUNS = 10;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts both services, which can be replaced one after the other. */
async function startServices(environment: Record<string, string>) {
  let keys = testEncryptionKeysText;
  const start = (name: (typeof SERVICES)[number]) =>
    startServiceInProcess(name, { ...environment, ENCRYPTION_KEYS: keys });
  const running: ServiceInProcess[] = await Promise.all(SERVICES.map(start));
  closers.push(() => Promise.all(running.map((service) => service.stop())));
  return {
    managementUrl: () => (running[0] as ServiceInProcess).url,
    /** @param duringRestart runs while a service with the former keys and one with the new keys work concurrently */
    async restartAll(newKeys: string, duringRestart: () => Promise<void>): Promise<void> {
      keys = newKeys;
      for (const [index, name] of SERVICES.entries()) {
        const before = running[index] as ServiceInProcess;
        running[index] = await start(name);
        await duringRestart();
        await before.stop();
      }
    },
  };
}

// Follows docs/administration.md#rotating-encryption_keys step by step.
test('ENCRYPTION_KEYS are rotated under load, and no event or call fails', async () => {
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const queueUrl = await createTestQueueUrl(
    queueBackends().at(-1) ?? { name: 'PostgreSQL' },
    testDatabase.url,
  );
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  const account = await seedAccount(database);
  const token = { accountId: account.id, name: 'e2e', permissionSets: ['account_admin' as const] };
  const authorization = `Token ${(await createServiceToken(database.prisma, token)).token}`;
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  const environment = { DATABASE_URL: testDatabase.url, QUEUE_URL: queueUrl };
  const services = await startServices(environment);
  const secrets = new Map<string, string>();
  let runs = 0;

  async function post(path: string, body: object): Promise<{ id: string; hmac_secret: string }> {
    const headers = { authorization, 'content-type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${services.managementUrl()}/api${path}`, request);
    expect(response.status).toBe(201);
    return ((await response.json()) as { data: { id: string; hmac_secret: string } }).data;
  }

  /** Creates secrets, and publishes deliveries that are signed with all existing ones. */
  async function produceLoad(): Promise<void> {
    for (let count = 0; count < WEBHOOKS; count += 1) {
      const path = `/${secrets.size}`;
      const { hmac_secret: secret } = await post(`/v3/accounts/${account.id}/webhooks/subscriptions`, {
        name: path,
        event_types: ['job.run.started'],
        client_url: receiver.url + path,
      });
      secrets.set(path, secret);
    }
    for (let count = 0; count < RUNS; count += 1) {
      await post(`/v2/accounts/${account.id}/runs/`, {
        job_id: account.jobs[0]?.id,
        engine_version: '1.9.2',
      });
      runs += 1;
    }
  }

  const [k1, k2] = [testEncryptionKeysText, `k2:${randomBytes(32).toString('base64')}`];
  await produceLoad();
  await services.restartAll(`${k1},${k2}`, produceLoad);
  await services.restartAll(`${k2},${k1}`, produceLoad);
  const reencrypting = promisify(execFile)(process.execPath, [ADMIN, 'secrets', 'reencrypt'], {
    env: { ...environment, ENCRYPTION_KEYS: `${k2},${k1}` },
  });
  await produceLoad();
  await reencrypting;
  await services.restartAll(k2, produceLoad);

  await eventually(async () => {
    expect(await countDispatchedEvents(database)).toBe(runs);
    expect(await database.prisma.delivery.count({ where: { status: 'pending' } })).toBe(0);
  });
  const deliveries = await database.prisma.delivery.groupBy({ by: ['status', 'attemptCount'], _count: true });
  expect(deliveries).toEqual([{ status: 'delivered', attemptCount: 1, _count: receiver.requests.length }]);
  const forged = receiver.requests.filter(
    ({ path, body, headers }) => !verify(body, secrets.get(path) ?? '', headers.authorization),
  );
  expect(forged).toEqual([]);
  const stored = await database.prisma.subscription.findMany({ select: { hmacSecretCiphertext: true } });
  expect(stored.filter(({ hmacSecretCiphertext }) => !hmacSecretCiphertext.startsWith('k2.'))).toEqual([]);
  expect(stored).toHaveLength(secrets.size);
}, 300_000);
