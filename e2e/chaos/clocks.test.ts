import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from '@jest/globals';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import {
  eventually,
  queueBackends,
  seedAccount,
  seedDeliveries,
  seedSubscription,
  startReceiver,
} from '@runhook/testing';
import { startService } from '../services.ts';
import { Releases } from './releases.ts';
import { startServers } from './servers.ts';
import { isLong } from './world.ts';

const HOUR_MS = 3_600_000;
const PRELOAD = fileURLToPath(new URL('./clock-ahead.mjs', import.meta.url));

/** Retries that are due at an even rate, which a busy machine can make. */
const COUNT = isLong ? 10_000 : 200;
const SPREAD_MS = isLong ? 50_000 : 2_000;
const FIRST_DUE_MS = isLong ? 15_000 : 3_000;
const LATE_MAX_MS = 2_000;
const EARLY_MAX_MS = 1_000;

/** How far the clock of each of two dispatchers is ahead of the server's. */
const CLOCKS: Record<string, [number, number]> = {
  right: [0, 0],
  'an hour ahead and an hour behind': [HOUR_MS, -HOUR_MS],
  ...(isLong && { 'an hour ahead': [HOUR_MS, HOUR_MS], 'an hour behind': [-HOUR_MS, -HOUR_MS] }),
};

const releases: Releases[] = [];
afterEach(async () => {
  for (const each of releases.splice(0)) await each.run();
});

test.each(queueBackends())(
  'dispatchers whose clocks are wrong make each retry when it is due, with as many calls to a queue on $name',
  async ({ name }) => {
    const made: Record<string, Made> = {};
    for (const [clocks, aheadMs] of Object.entries(CLOCKS)) {
      made[clocks] = await makeRetries(name, aheadMs);
      process.stderr.write(`queue on ${name}, clocks ${clocks}: ${JSON.stringify(made[clocks])}\n`);
    }
    const { right, ...wrong } = made as Record<string, Made> & { right: Made };
    for (const { attempts, earliestMs, latestMs, calls } of Object.values(wrong)) {
      expect(attempts).toBe(COUNT);
      expect(earliestMs).toBeGreaterThan(-EARLY_MAX_MS);
      expect(calls).toBeLessThan(2 * right.calls);
      // A busy machine is late even if all clocks are right.
      expect(latestMs).toBeLessThan(Math.max(LATE_MAX_MS, 2 * right.latestMs));
    }
  },
  900_000,
);

interface Made {
  attempts: number;
  /** When the requests arrived at the endpoint, relative to when they were due. */
  earliestMs: number;
  latestMs: number;
  /** Commands that Redis ran, or transactions of PostgreSQL, from the first retry that was queued to the last that arrived. */
  calls: number;
}

async function makeRetries(backend: 'PostgreSQL' | 'Redis', aheadMs: readonly number[]): Promise<Made> {
  const opened = new Releases();
  releases.push(opened);
  const servers = await startServers(backend);
  opened.add(() => servers.close());
  const receiver = await startReceiver();
  opened.add(() => receiver.close());
  const database = openPrismaDatabase({ url: servers.databaseUrl, onConnectionError: () => undefined });
  opened.add(() => database.close());
  const queue = openDeliveryQueue(createQueueBackend(servers.queueUrl), () => undefined);
  opened.add(() => queue.close());
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
      opened.add(() => dispatcher.stop());
    }),
  );

  const firstDueMs = Date.now() + FIRST_DUE_MS;
  const { rows } = await database.pool.query<{ id: string; event_id: string; due_ms: number }>(DEFER, [
    COUNT,
    firstDueMs,
    SPREAD_MS / COUNT,
  ]);
  expect(rows).toHaveLength(COUNT);
  const callsBefore = await callsOf(backend, servers, database);
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
  const calls = (await callsOf(backend, servers, database)) - callsBefore;
  const dueMs = new Map(rows.map(({ event_id, due_ms }) => [event_id, due_ms]));
  const lateMs = receiver.requests.map(
    ({ headers, receivedAt }) => receivedAt - (dueMs.get(String(headers['webhook-id'])) ?? Number.NaN),
  );
  await opened.run();
  return {
    attempts: lateMs.length,
    earliestMs: Math.round(Math.min(...lateMs)),
    latestMs: Math.round(Math.max(...lateMs)),
    calls,
  };
}

/** Makes deliveries of the log pending again after one attempt, due one after another. */
const DEFER = `
  WITH chosen AS (
    SELECT day, id, row_number() OVER (ORDER BY day, id) AS number FROM deliveries
    WHERE status = 'delivered' AND attempt_count = 1 LIMIT $1
  )
  UPDATE deliveries d
  SET status = 'pending', completed_at = NULL, reason = NULL, cycle = 0,
    next_attempt_at = to_timestamp(($2::float8 + chosen.number * $3::float8) / 1000)
  FROM chosen WHERE d.day = chosen.day AND d.id = chosen.id
  RETURNING d.id, d.event_id, extract(epoch FROM d.next_attempt_at)::float8 * 1000 AS due_ms`;

async function callsOf(
  backend: 'PostgreSQL' | 'Redis',
  { redis }: { redis(command: string): Promise<string> },
  { pool }: ReturnType<typeof openPrismaDatabase>,
): Promise<number> {
  if (backend === 'Redis') {
    const processed = /total_commands_processed:(\d+)/.exec(await redis('INFO stats'))?.[1];
    if (processed === undefined) throw new Error('Redis does not say how many commands it has run');
    return Number(processed);
  }
  const { rows } = await pool.query<{ calls: string }>(
    'SELECT xact_commit AS calls FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(rows[0]?.calls);
}
