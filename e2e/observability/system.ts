import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  createTestQueueUrl,
  type QueueBackend,
  type Receiver,
  seedAccount,
  startReceiver,
  type TestAccount,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { type RunningService, startService } from '../services.ts';

/** A database, a queue, an account and a receiver. Services are started on them as processes. */
export interface System {
  database: PrismaDatabase;
  databaseUrl: string;
  queueUrl: string;
  account: TestAccount;
  token: string;
  receiver: Receiver;
  /** Creates a service token with all permissions of an account. */
  newToken(accountId: number): Promise<{ token: string }>;
  /** Starts a service, which {@link close} stops, whatever its exit code is. */
  start(name: 'management' | 'dispatcher', environment?: Record<string, string>): Promise<RunningService>;
  onClose(closer: () => Promise<unknown>): void;
  close(): Promise<void>;
}

export async function openSystem(backend: QueueBackend): Promise<System> {
  const closers: (() => Promise<unknown>)[] = [];
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const database = openPrismaDatabase({
    url: testDatabase.url,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
    onConnectionError: () => undefined,
  });
  closers.push(() => database.close());
  const queueUrl = await createTestQueueUrl(backend, testDatabase.url);
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  const account = await seedAccount(database);
  const newToken = (accountId: number) =>
    createServiceToken(database.prisma, { accountId, name: 'e2e', permissionSets: ['account_admin'] });
  const { token } = await newToken(account.id);
  return {
    database,
    databaseUrl: testDatabase.url,
    queueUrl,
    account,
    token,
    receiver,
    newToken,
    async start(name, environment = {}) {
      const settings = { DATABASE_URL: testDatabase.url, QUEUE_URL: queueUrl, ...environment };
      const service = await startService(name, settings);
      closers.push(() => service.stop());
      return service;
    },
    onClose: (closer) => void closers.push(closer),
    async close() {
      const failures: unknown[] = [];
      for (const close of closers.splice(0).reverse()) {
        // A service that keeps running would prevent the end of the test run.
        await close().catch((error: unknown) => failures.push(error));
      }
      if (failures.length > 0) throw new AggregateError(failures, 'not everything was closed');
    },
  };
}

/** Calls the API as an admin of the account. */
export async function callApi(
  { token }: Pick<System, 'token'>,
  management: RunningService,
  request: { method: string; path: string; body?: object; headers?: Record<string, string> },
): Promise<{ status: number; data: Record<string, unknown> }> {
  const response = await fetch(`${management.url}/api${request.path}`, {
    method: request.method,
    headers: {
      authorization: `Token ${token}`,
      'content-type': 'application/json',
      ...request.headers,
    },
    ...(request.body ? { body: JSON.stringify(request.body) } : {}),
  });
  const { data } = (await response.json()) as { data: Record<string, unknown> };
  return { status: response.status, data };
}
