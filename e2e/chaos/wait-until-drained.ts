import { eventually } from '@runhook/testing';
import { runKey } from './endpoint.ts';
import { type EventRow, type MayLose, mayBeLost, SELECT_EVENTS } from './ledger.ts';
import type { Load } from './load.ts';
import type { Stores } from './servers.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<Stores>;

const COUNT_UNDRAINED = `
  SELECT (SELECT count(*) FROM undispatched_events) AS events,
         (SELECT count(*) FROM deliveries WHERE status = 'pending') AS deliveries`;
const UNFINISHED_STATES = ['waiting', 'wait', 'active', 'delayed', 'prioritized', 'paused'];

const UNDRAINED_ROWS_MAX = 5;
/** Returns a few rows of each kind, which show why they are pending. */
const SELECT_UNDRAINED = `
  SELECT jsonb_agg(to_jsonb(d)) AS found FROM (
    SELECT d.*, d.tableoid::regclass::text AS partition, s.active, s.http_status_code, s.error_code
    FROM deliveries d LEFT JOIN subscriptions s ON s.id = d.subscription_id
    WHERE d.status = 'pending' LIMIT ${UNDRAINED_ROWS_MAX}) d
  UNION ALL SELECT jsonb_agg(to_jsonb(e)) FROM (SELECT * FROM undispatched_events LIMIT ${UNDRAINED_ROWS_MAX}) e
  UNION ALL SELECT jsonb_agg(to_jsonb(q) - 'message') FROM (SELECT * FROM quarantined_items LIMIT ${UNDRAINED_ROWS_MAX}) q`;

/** Resolves when no event is undispatched and no delivery is pending. Throws with these rows at the timeout. */
export async function waitUntilDrained(
  world: World,
  load: Load,
  timeoutMs: number,
  mayLose?: MayLose,
): Promise<void> {
  try {
    await waitUntilNothingPending(world, load, timeoutMs, mayLose);
  } catch (error) {
    const { pool } = world.database;
    const rows = await pool.query(SELECT_UNDRAINED).then(
      (result) => result.rows,
      (failure: unknown) => failure,
    );
    const jobs = await Promise.all(world.queues.map((queue) => queue.counts().catch(() => null)));
    throw new Error(`${String(error)}\n${JSON.stringify({ rows, jobs }, null, 2)}`, { cause: error });
  }
}

async function waitUntilNothingPending(
  { database }: World,
  load: Load,
  timeoutMs: number,
  mayLose: MayLose = 'nothing',
): Promise<void> {
  await eventually(
    async () => {
      const { rows } = await database.pool.query<Record<string, string>>(COUNT_UNDRAINED);
      const { rows: events } = await database.pool.query<EventRow>(SELECT_EVENTS, [
        load.accountId,
        load.subscriptions.leaving,
      ]);
      const recordedKeys = new Set(events.map((event) => runKey(event.run_id, event.event_type)));
      const unrecordedCount = [...load.accepted.keys()].filter(
        (key) => !recordedKeys.has(key) && !mayBeLost(key, load, mayLose),
      ).length;
      const pending = { ...rows[0], unrecordedCount: String(unrecordedCount) };
      if (Object.values(pending).some((count) => count !== '0')) {
        throw new Error(`not drained: ${JSON.stringify(pending)}`);
      }
    },
    { timeoutMs, intervalMs: 100 },
  );
}

/** Resolves when the queues have no job, which includes stalled jobs of killed workers. */
export async function waitUntilQueuesEmpty({ queues }: World, timeoutMs: number): Promise<void> {
  await eventually(
    async () => {
      for (const queue of queues) {
        const counts = await queue.counts();
        if (UNFINISHED_STATES.some((state) => (counts[state] ?? 0) > 0)) {
          throw new Error(`the queue still has jobs: ${JSON.stringify(counts)}`);
        }
      }
    },
    { timeoutMs, intervalMs: 250 },
  );
}

const SELECT_LAST_HEALTHY = `
  SELECT extract(epoch FROM max(completed_at))::float8 * 1000 AS at_ms FROM deliveries
  WHERE account_id = $1 AND subscription_id = $2`;

/** Returns the time at which the last delivery to the healthy endpoint was recorded, in milliseconds since the epoch. */
export async function readLastHealthyMs({ database }: World, load: Load): Promise<number> {
  const values = [load.accountId, load.subscriptions.healthy];
  const { rows } = await database.pool.query<{ at_ms: number }>(SELECT_LAST_HEALTHY, values);
  return rows[0]?.at_ms ?? 0;
}
