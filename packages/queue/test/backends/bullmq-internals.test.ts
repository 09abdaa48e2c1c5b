import { afterEach, expect, test } from '@jest/globals';
import { createTestDatabase } from '@runhook/testing';
import { createPostgresBackend } from 'bullmq';
import { POSTGRES_SCHEMA } from '../../src/backends/postgres.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const HINT = `
This version of BullMQ makes a PostgreSQL connection ready in another way than createRetryingBackend (backends/postgres.ts)
counts on: backend.connection.waitUntilReady() calls backend.connection.bootstrap() once and remembers what came of it.
Either BullMQ tries again by itself now, and createRetryingBackend can go, or it needs another way in.`;

test('BullMQ makes its connection to PostgreSQL ready by `connection.bootstrap`, and remembers a failure', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const backend = createPostgresBackend(
    'internals',
    { connection: { connectionString: database.url, schema: POSTGRES_SCHEMA, migrate: true } },
    { blocking: false },
  );
  closers.push(() => backend.close());
  const { connection } = backend as unknown as { connection?: { [name: string]: unknown } };
  if (typeof connection?.bootstrap !== 'function' || typeof connection.waitUntilReady !== 'function') {
    throw new Error(HINT);
  }
  let tries = 0;
  connection.bootstrap = async () => {
    tries += 1;
    throw new Error('the server is away');
  };
  const { waitUntilReady } = backend;
  const outcomes = await Promise.allSettled([waitUntilReady.call(backend), waitUntilReady.call(backend)]);
  const again = await Promise.allSettled([waitUntilReady.call(backend)]);
  if (tries !== 1 || [...outcomes, ...again].some(({ status }) => status !== 'rejected'))
    throw new Error(HINT);
  expect(tries).toBe(1);
});
