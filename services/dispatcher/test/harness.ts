import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher, type EventPublisher } from '@runhook/publisher';
import { createLogger, Lifecycle } from '@runhook/runtime';
import {
  createTestDatabase,
  createTestQueueUrl,
  type QueueBackend,
  type Receiver,
  seedAccount,
  seedSubscription,
  startReceiver,
  type TestAccount,
  testEncryptionKeys,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startDispatcher } from '../src/app.ts';
import type { Quarantine } from '../src/record/quarantine.ts';
import type { DispatcherSettings } from '../src/settings.ts';
import { testQuarantine } from './silent-quarantine.ts';

/** A real database and queue for dispatchers, with a receiver for their requests and a publisher of events. */
export interface Harness {
  database: PrismaDatabase;
  /** URL of a superuser; a dispatcher has its role. */
  databaseUrl: string;
  queueUrl: string;
  account: TestAccount;
  /** Settings of a dispatcher, which a test may override. */
  settings: DispatcherSettings;
  receiver: Receiver;
  /** Creates a subscription with a path of the receiver, for `account` when no other is given. */
  subscribe(path: string, accountId?: number): ReturnType<typeof seedSubscription>;
  /** Adds events to the queue as external publishers do. */
  publisher: EventPublisher;
  quarantine: Quarantine;
  startDispatcher(settings?: Partial<DispatcherSettings>): Promise<{ port: number; stop(): Promise<void> }>;
  /** Closes everything in reverse order of opening. */
  close(): Promise<void>;
}

export async function openHarness(backend: QueueBackend): Promise<Harness> {
  const closers: (() => Promise<void>)[] = [];
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const queueUrl = await createTestQueueUrl(backend, testDatabase.url);
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  const publisher = createEventPublisher({ queueUrl });
  closers.push(() => publisher.close());

  const serviceQueueUrl = backend.name === 'PostgreSQL' ? testDatabase.dispatcherUrl : queueUrl;
  const settings = fastSettings(testDatabase.dispatcherUrl, serviceQueueUrl);
  const account = await seedAccount(database);
  return {
    database,
    databaseUrl: testDatabase.url,
    queueUrl,
    account,
    settings,
    receiver,
    subscribe: (path, accountId = account.id) =>
      seedSubscription(database, { accountId, clientUrl: `${receiver.url}${path}` }),
    publisher,
    quarantine: testQuarantine(database.pool),
    async startDispatcher(changed = {}) {
      const logger = createLogger({ service: 'dispatcher', level: process.env.TEST_LOG_LEVEL ?? 'silent' });
      const lifecycle = new Lifecycle({ logger });
      const stop = () => lifecycle.close('test');
      closers.push(stop);
      const { port } = await startDispatcher({ ...settings, ...changed }, lifecycle, logger);
      return { port, stop };
    },
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

function fastSettings(databaseUrl: string, queueUrl: string): DispatcherSettings {
  return {
    databaseUrl,
    queueUrl,
    encryptionKeys: testEncryptionKeys,
    port: 0,
    host: '127.0.0.1',
    deliveryTimeoutMs: 10_000,
    deliveryMaxRetries: 5,
    retryBaseDelayMs: 20,
    deliveryConcurrency: 50,
    pendingDeliveriesPerAccount: 100_000,
    runStepsBytesPerAccount: 1_000_000_000,
    logRetentionDays: 30,
    runRetentionDays: 365,
    egressAllowCidrs: ['127.0.0.0/8'],
    egressDenyCidrs: [],
    egressPorts: [],
    egressRequireHttps: false,
    logLevel: 'silent',
  };
}
