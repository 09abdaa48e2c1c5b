import { afterEach, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS, MAINTENANCE, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend, migrateQueue } from '@runhook/queue';
import { createTestDatabase } from '@runhook/testing';
import pg from 'pg';
import { queueUrlWithLogin } from '../../src/queue-url.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openDatabase() {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  return database;
}

function openQueue(url: string, name: string) {
  const queue = createQueueBackend(url).createQueue<object>(name);
  queue.on('error', () => undefined);
  closers.push(() => queue.close());
  return queue;
}

test('the roles of the services add and take jobs of each queue, in bulk too, and can change no schema', async () => {
  const { managementUrl, dispatcherUrl } = await openDatabase();
  for (const name of [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES, MAINTENANCE]) {
    const queue = openQueue(managementUrl, name);
    await queue.add('one', {});
    await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'many', data: {} })));
    const taken = new Promise((resolve) => {
      let count = 0;
      const worker = createQueueBackend(dispatcherUrl).createWorker<object>(
        name,
        async () => {
          count += 1;
          if (count === 21) resolve(count);
        },
        { concurrency: 1 },
      );
      closers.push(() => worker.close());
    });
    expect(await taken).toBe(21);
  }
  const client = new pg.Client({ connectionString: dispatcherUrl });
  await client.connect();
  closers.push(() => client.end());
  for (const statement of ['CREATE TABLE bullmq.x ()', 'UPDATE bullmq.migration SET version = 0'])
    await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' });
});

test('a queue whose schema is missing is not ready, and is not created before migrate runs', async () => {
  const { url } = await openDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  closers.push(() => client.end());
  await client.query('DROP SCHEMA bullmq CASCADE');
  const queue = openQueue(url, JOB_RUN_EVENTS);
  await expect(queue.waitUntilReady()).rejects.toMatchObject({ code: 'QUEUE_SCHEMA_BEHIND' });
  expect((await client.query(`SELECT to_regclass('bullmq.job') AS job`)).rows).toEqual([{ job: null }]);
  await migrateQueue(url);
  await openQueue(url, JOB_RUN_EVENTS).waitUntilReady();
});

test.each([
  ['postgres://queue-host:5432/x', 'postgres://role:p%40ss@queue-host:5432/x'],
  ['postgres://other@queue-host/x', 'postgres://other@queue-host/x'],
  ['redis://queue-host', 'redis://queue-host'],
])('the URL %s gets the login of the database if it is on PostgreSQL and has no user', (url, expected) => {
  expect(queueUrlWithLogin(url, 'postgres://role:p%40ss@db/x')).toBe(expected);
});
