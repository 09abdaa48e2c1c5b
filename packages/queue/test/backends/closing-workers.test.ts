import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { createQueueBackend } from '@runhook/queue';
import { createTestQueueUrl, queueBackends } from '@runhook/testing';
import type { Redis } from 'ioredis';

const redis = queueBackends().find(({ name }) => name === 'Redis');
const testOnRedis = redis === undefined ? test.skip : test;

testOnRedis('a worker is closed while its waiting connection is about to reconnect', async () => {
  const queueUrl = await createTestQueueUrl({ name: 'Redis' }, '');
  const worker = createQueueBackend(queueUrl).createWorker('closing', async () => undefined, {});
  worker.on('error', () => undefined);
  await once(worker, 'drained');
  const { blockingClient } = worker.getBackend() as unknown as { blockingClient: Promise<Redis> };
  const client = await blockingClient;
  const reconnecting = once(client, 'reconnecting');
  client.disconnect(true);
  await reconnecting;
  await worker.close();
  expect(worker.isRunning()).toBe(false);
});
