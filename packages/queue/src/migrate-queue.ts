import { runMigrations } from 'bullmq';
import pg from 'pg';
import { POSTGRES_SCHEMA, queueBackendName } from './queue-backend.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Brings BullMQ's own schema in PostgreSQL to what this release needs, and answers its version; null on Redis, which
 * has no schema. Calls at the same time take turns (an advisory lock of the transaction).
 */
export async function migrateQueue(queueUrl: string): Promise<number | null> {
  if (queueBackendName(queueUrl) === 'Redis') return null;
  const client = new pg.Client({
    connectionString: queueUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // The call that a broken connection interrupts rejects by itself.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await runMigrations(client, POSTGRES_SCHEMA);
  } finally {
    await client.end();
  }
}
