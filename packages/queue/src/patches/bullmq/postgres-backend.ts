import { setTimeout as wait } from 'node:timers/promises';
import { withJitter } from '@runhook/runtime/timers';
import {
  assertSchemaCompatibility,
  createPostgresBackend,
  LATEST_SCHEMA_VERSION,
  type PostgresConnection,
  type PostgresQueueBackend,
  SchemaMigrationRequiredError,
} from 'bullmq';
import type pg from 'pg';

export const POSTGRES_SCHEMA = 'bullmq';

const RETRY_MS = 500;
/** Timeouts of a wait for a job and of the check of its connection, as shares of `silentMs`. */
const WAIT_SHARE = 2 / 3;
const HEARTBEAT_SHARE = 1 / 3;

/** Jittered, because all processes lose PostgreSQL simultaneously. */
export function readinessRetryMs(): number {
  return withJitter(RETRY_MS);
}

/** Creates BullMQ's backend on PostgreSQL with the replacements of this file. Its connection must be a configuration. */
export function createPatchedBackend(
  silentMs: number,
  ...[name, options, factoryOptions]: Parameters<typeof createPostgresBackend>
): PostgresQueueBackend {
  const backend = createPostgresBackend(name, options, factoryOptions);
  retryReadiness(backend.connection);
  checkBeforeWaits(backend, silentMs);
  wakeWhenDue(backend);
  readOldestFirst(backend, name);
  return backend;
}

/**
 * Retries to make a connection ready. BullMQ caches the first result, even an error, and the loop of a worker awaits it
 * again without a pause: the worker would never recover, and its process would be busy with that loop.
 */
function retryReadiness(connection: PostgresConnection): void {
  let readiness: Promise<void> | null = null;
  connection.waitUntilReady = () => {
    readiness ??= checkSchema(connection).catch(async (error: unknown) => {
      await wait(readinessRetryMs());
      readiness = null;
      throw error;
    });
    return readiness;
  };
}

/** The queue's schema is not that of this release. */
class QueueSchemaBehindError extends Error {
  readonly code = 'QUEUE_SCHEMA_BEHIND';

  constructor(state: 'missing' | 'outdated') {
    super(`The schema of the queue in PostgreSQL is ${state}: run migrate with QUEUE_URL.`);
  }
}

/**
 * Only `migrate` changes the schema: the services' roles own nothing. Discards the connection after an error: one that
 * did not respond in time would be used again.
 */
async function checkSchema(connection: PostgresConnection): Promise<void> {
  const client = await connection.pool.connect();
  try {
    const version = await assertSchemaCompatibility(client, connection.schema);
    if (version < LATEST_SCHEMA_VERSION) throw new QueueSchemaBehindError('outdated');
  } catch (error) {
    client.release(true);
    if (error instanceof SchemaMigrationRequiredError) throw new QueueSchemaBehindError('missing');
    throw error;
  }
  client.release();
  setImmediate(() => connection.emit('ready'));
}

/**
 * Checks the connection on which a worker waits for jobs before each wait: a connection that the network has dropped
 * reports no jobs, and a keepalive does not detect a proxy that keeps it open. Waits are limited, because BullMQ's take
 * up to an hour.
 */
function checkBeforeWaits(backend: PostgresQueueBackend, silentMs: number): void {
  const waitForJob = backend.waitForJob.bind(backend);
  backend.waitForJob = async (seconds) => {
    if (!backend.closing) await checkListener(backend, silentMs * HEARTBEAT_SHARE);
    return await waitForJob(Math.min(seconds, (silentMs * WAIT_SHARE) / 1_000));
  };
}

/** Maximum delay for which a wait is ended; waits of workers are not longer. */
const WAKE_WITHIN_MS = 15_000;
/** Margin for the time of a measured clock. */
const WAKE_MARGIN_MS = 5;

/**
 * Ends the wait for jobs when a job is due that was delayed meanwhile. BullMQ reads the next due time at the start of a
 * wait only, so a worker that delays a job while it waits for others would take it up to five seconds late.
 */
function wakeWhenDue(backend: PostgresQueueBackend): void {
  const moveToDelayed = backend.moveToDelayed.bind(backend);
  const waiting = backend as unknown as { cancelWait?: () => void };
  backend.moveToDelayed = async (jobId, timestamp, delay, ...rest) => {
    const result = await moveToDelayed(jobId, timestamp, delay, ...rest);
    if (delay <= WAKE_WITHIN_MS) setTimeout(() => waiting.cancelWait?.(), delay + WAKE_MARGIN_MS).unref();
    return result;
  };
}

async function checkListener({ connection }: PostgresQueueBackend, timeoutMs: number): Promise<void> {
  const client = (await connection.getListenClient()) as pg.Client;
  try {
    await client.query({ text: 'SELECT', query_timeout: timeoutMs } as pg.QueryConfig);
  } catch (error) {
    // BullMQ replaces the connection once it reports an error.
    if (!connection.isClosing) client.emit('error', error);
    throw error;
  }
}

const oldestFirst = (where: string, order: string) => `
  SELECT id FROM ${POSTGRES_SCHEMA}.job WHERE queue = $1 AND ${where} ORDER BY ${order} OFFSET $2 LIMIT $3`;
const OLDEST_WAITING = oldestFirst(`state = 'waiting' AND priority = 0`, 'priority, seq');
const OLDEST_FIRST: Readonly<Record<string, string>> = {
  wait: OLDEST_WAITING,
  waiting: OLDEST_WAITING,
  active: oldestFirst(`state = 'active'`, 'seq'),
};

/**
 * Reads the oldest jobs first in ascending order. BullMQ's function ignores that order for waiting and active jobs: the
 * first page of the oldest jobs would have the newest ones, and the reconciler would conclude that the event of the
 * oldest job has no job.
 */
function readOldestFirst(backend: PostgresQueueBackend, queue: string): void {
  const { connection } = backend;
  const getRanges = backend.getRanges.bind(backend);
  backend.getRanges = async (types, start = 0, end = -1, asc = false) => {
    if (!asc || end < 0) return await getRanges(types, start, end, asc);
    const ranges = types.map(async (type) => {
      const text = OLDEST_FIRST[type];
      if (text === undefined) return (await getRanges([type], start, end, asc)).flat();
      await connection.waitUntilReady();
      const { rows } = await connection.pool.query<{ id: string }>(text, [queue, start, end - start + 1]);
      // The caller reverses the result, because it expects a range of a Redis list, newest first.
      return rows.map(({ id }) => id).reverse();
    });
    // Typed as tuples of one id by BullMQ, for ranges of any length.
    return (await Promise.all(ranges)) as [string][];
  };
}
