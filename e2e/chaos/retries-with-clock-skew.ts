import { fileURLToPath } from 'node:url';
import { expect } from '@jest/globals';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import {
  eventually,
  seedAccount,
  seedDeliveries,
  seedSubscription,
  startReceiver,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { startService } from '../services.ts';
import { CleanupStack } from './cleanup-stack.ts';
import { type BackendName, startServers } from './servers.ts';
import { isLong } from './world.ts';

export const HOUR_MS = 3_600_000;
export const EARLY_MAX_MS = 1_000;
const PRELOAD = fileURLToPath(new URL('./clock-ahead.mjs', import.meta.url));

/** Number of retries, which are due at an even rate that a busy machine can sustain. */
export const COUNT = isLong ? 10_000 : 200;
const SPREAD_MS = isLong ? 50_000 : 2_000;
const FIRST_DUE_MS = isLong ? 15_000 : 3_000;

export interface RetryTimes {
  attempts: number;
  /** Time from when a retry was due to its arrival at the endpoint. */
  earliestMs: number;
  latestMs: number;
  /** Commands of Redis, or transactions of PostgreSQL, from the first queued retry to the last arrival. */
  calls: number;
}

/** Creates retries that are due at an even rate, and waits until dispatchers with these clock offsets have made them. */
export async function measureRetries(backend: BackendName, aheadMs: readonly number[]): Promise<RetryTimes> {
  const cleanup = new CleanupStack();
  try {
    return await measureRetriesWith(cleanup, backend, aheadMs);
  } finally {
    await cleanup.run();
  }
}

async function measureRetriesWith(
  cleanup: CleanupStack,
  backend: BackendName,
  aheadMs: readonly number[],
): Promise<RetryTimes> {
  const servers = await startServers(backend);
  cleanup.add(() => servers.close());
  const receiver = await startReceiver();
  cleanup.add(() => receiver.close());
  const database = openPrismaDatabase({
    url: servers.databaseUrl,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
    onConnectionError: () => undefined,
  });
  cleanup.add(() => database.close());
  const queue = openDeliveryQueue(createQueueBackend(servers.queueUrl), () => undefined);
  cleanup.add(() => queue.close());
  const { id: accountId } = await seedAccount(database);
  const { id: subscriptionId } = await seedSubscription(database, { accountId, clientUrl: receiver.url });
  await seedDeliveries(database.pool, { accountId, subscriptionId, count: COUNT + COUNT / 50, days: 1 });
  await Promise.all(
    aheadMs.map(async (ms) => {
      const dispatcher = await startService('dispatcher', {
        DATABASE_URL: servers.databaseUrl,
        QUEUE_URL: servers.queueUrl,
        NODE_OPTIONS: `--import ${PRELOAD}`,
        CLOCK_AHEAD_MS: String(ms),
      });
      cleanup.add(() => dispatcher.stop());
    }),
  );

  const firstDueMs = Date.now() + FIRST_DUE_MS;
  const { rows } = await database.pool.query<{ id: string; event_id: string; due_ms: number }>(
    SCHEDULE_RETRIES,
    [COUNT, firstDueMs, SPREAD_MS / COUNT],
  );
  expect(rows).toHaveLength(COUNT);
  const callsBefore = await countStoreCalls(backend, servers, database);
  const nowMs = Date.now();
  await queue.add(
    rows.map(({ id, due_ms }) => ({
      deliveryId: id,
      cycle: 0,
      accountId,
      delayMs: Math.max(1, Math.round(due_ms) - nowMs),
      attemptsLeft: 5,
    })),
  );
  await eventually(() => expect(receiver.requests.length).toBeGreaterThanOrEqual(COUNT), {
    timeoutMs: 600_000,
    intervalMs: 100,
  });
  const calls = (await countStoreCalls(backend, servers, database)) - callsBefore;
  const dueMs = new Map(rows.map(({ event_id, due_ms }) => [event_id, due_ms]));
  const lateMs = receiver.requests.map(
    ({ headers, receivedAt }) => receivedAt - (dueMs.get(String(headers['webhook-id'])) ?? Number.NaN),
  );
  return {
    attempts: lateMs.length,
    earliestMs: Math.round(Math.min(...lateMs)),
    latestMs: Math.round(Math.max(...lateMs)),
    calls,
  };
}

/** Makes deliveries of the log pending again after one attempt, due one after another. */
const SCHEDULE_RETRIES = `
  WITH chosen AS (
    SELECT day, id, row_number() OVER (ORDER BY day, id) AS number FROM deliveries
    WHERE status = 'delivered' AND attempt_count = 1 LIMIT $1
  )
  UPDATE deliveries d
  SET status = 'pending', completed_at = NULL, reason = NULL, cycle = 0,
    next_attempt_at = to_timestamp(($2::float8 + chosen.number * $3::float8) / 1000)
  FROM chosen WHERE d.day = chosen.day AND d.id = chosen.id
  RETURNING d.id, d.event_id, extract(epoch FROM d.next_attempt_at)::float8 * 1000 AS due_ms`;

async function countStoreCalls(
  backend: BackendName,
  { redis }: { redis(command: string): Promise<string> },
  { pool }: ReturnType<typeof openPrismaDatabase>,
): Promise<number> {
  if (backend === 'Redis') {
    const processed = /total_commands_processed:(\d+)/.exec(await redis('INFO stats'))?.[1];
    if (processed === undefined) throw new Error('Redis does not report the number of its commands');
    return Number(processed);
  }
  const { rows } = await pool.query<{ calls: string }>(
    'SELECT xact_commit AS calls FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(rows[0]?.calls);
}
