import { afterAll, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createEventPublisher } from '@runhook/publisher';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  oneQueueBackend,
  type QueueBackend,
  seedAccount,
  seedSubscription,
  startReceiver,
  startTcpProxy,
  type TcpProxy,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startServiceInProcess } from './services-in-process.ts';

/** The reconciler runs every 10 s, and finds deliveries that are overdue by this time plus 5 s. */
const DELIVERY_TIMEOUT_MS = 2_000;
const ATTEMPTS_MAX = 3;

interface Delivery {
  id: string;
  status: string;
  attempt_count: number;
}

interface Story {
  queueProxy: TcpProxy;
  call(method: string, rest: string): Promise<{ status: number; data: Delivery & Delivery[] }>;
}

const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function open(backend: QueueBackend): Promise<Story> {
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const queueDatabase = await createTestDatabase();
  closers.push(() => queueDatabase.drop());
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  const { id: accountId, jobs } = await seedAccount(database);
  const receiver = await startReceiver({ respond: 500 });
  closers.push(() => receiver.close());
  const subscription = await seedSubscription(database, { accountId, clientUrl: receiver.url });
  const token = { accountId, name: 'e2e', permissionSets: ['account_admin' as const] };
  const authorization = `Token ${(await createServiceToken(database.prisma, token)).token}`;
  const queueUrl = await createTestQueueUrl(backend, queueDatabase.url);
  const queueProxy = await startTcpProxy(queueUrl);
  closers.push(() => queueProxy.close());
  const environment = {
    DATABASE_URL: testDatabase.url,
    DELIVERY_TIMEOUT_MS: String(DELIVERY_TIMEOUT_MS),
    DELIVERY_MAX_RETRIES: String(ATTEMPTS_MAX - 1),
  };
  const [management, dispatcher] = await Promise.all([
    startServiceInProcess('management', { ...environment, QUEUE_URL: queueProxy.url }),
    startServiceInProcess('dispatcher', { ...environment, QUEUE_URL: queueUrl }),
  ]);
  closers.push(() => Promise.all([management.stop(), dispatcher.stop()]));
  const call: Story['call'] = async (method, rest) => {
    const path = `/api/v3/accounts/${accountId}/webhooks/subscription/${subscription.id}/${rest}`;
    const response = await fetch(management.url + path, { method, headers: { authorization } });
    const { data } = (await response.json()) as { data: Delivery & Delivery[] };
    return { status: response.status, data };
  };
  const publisher = createEventPublisher({ queueUrl });
  closers.push(() => publisher.close());
  await publisher.publish(exampleEvent('job.run.started', jobs[0] as never));
  return { queueProxy, call };
}

async function redeliverWithoutResponses({ queueProxy, call }: Story): Promise<void> {
  const hasFailedAfter = (attempts: number) =>
    eventually(async () => {
      const { data } = await call('GET', 'deliveries');
      expect(data).toMatchObject([{ status: 'failed', attempt_count: attempts }]);
      return (data[0] as Delivery).id;
    });
  const id = await hasFailedAfter(ATTEMPTS_MAX);
  const redeliver = () => call('POST', `delivery/${id}/redeliver`);
  expect((await redeliver()).status).toBe(202);
  await hasFailedAfter(2 * ATTEMPTS_MAX);
  // The queue accepts the job, but its response is lost.
  queueProxy.dropResponsesTo('');
  expect((await redeliver()).status).toBe(202);
  await hasFailedAfter(3 * ATTEMPTS_MAX);
  await queueProxy.cut();
  expect((await redeliver()).status).toBe(202);
  await hasFailedAfter(4 * ATTEMPTS_MAX);
}

// The subject is the queue's response and not its kind; other-queue.long.test.ts repeats this on the other queue.
test.each(oneQueueBackend())(
  'a redelivery is accepted and makes one cycle of attempts, whether or not the queue on $name responds',
  async (backend) => redeliverWithoutResponses(await open(backend)),
);
