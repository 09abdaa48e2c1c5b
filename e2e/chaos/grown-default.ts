import {
  defaultPartitionBytes,
  ensureDayPartitions,
  findMissingDayPartitions,
  type Pool,
  type Transaction,
} from '@runhook/database';
import { eventually } from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import type { Fault } from './faults.ts';
import { isLong } from './world.ts';

/** Size in bytes, from `npm run chaos -- --default-mb <n>`; small in the short form. */
const SIZE_BYTES = Number(process.env.CHAOS_DEFAULT_MB ?? (isLong ? 1_024 : 4)) * 1024 * 1024;
/** Limit of the dispatchers; lower in the short form. */
const BYTES_MAX = Math.min(SIZE_BYTES / 4, 16 * 1024 * 1024);
const BATCH_ROWS = 10_000;
/** 300 events per second; in the short form the default. */
const RUN_INTERVAL_MS = isLong ? 7 : undefined;
const SAMPLE_INTERVAL_MS = 5;
/** Longest permitted wait of a read or write, on a machine without other load. */
const LOCK_WAIT_MAX_MS = 200;
const LOCK_KEY = `hashtext('runhook.ensure_day_partitions')`;

/**
 * Simulates that no partition could be created for days: the default partitions contain all rows of these days, and are converted
 * under load. Nothing is killed, so the ledger permits no repeated request.
 */
export const GROWN_DEFAULT: Fault = {
  name: 'a default partition is converted under load',
  drainedWithinSeconds: 240,
  ...(RUN_INTERVAL_MS === undefined ? {} : { runIntervalMs: RUN_INTERVAL_MS }),
  async strike({ backend, database: { pool } }) {
    await withoutPartitionCreation(pool, async () => {
      await eventually(() => inSession(pool, (client) => client.query(MOVE_TO_DEFAULT)));
      await fillDefault(pool);
    });
    const sizeBefore = await defaultPartitionBytes(pool);
    const beganMs = performance.now();
    const waitedMs = await measureLongestLockWait(pool, () =>
      eventually(async () => {
        const { waiting } = await ensureDayPartitions(pool, { defaultBytesMax: BYTES_MAX });
        if (waiting.length > 0) throw new Error(`${waiting.join(', ')} are waiting for a lock`);
      }),
    );
    const tookSeconds = (performance.now() - beganMs) / 1_000;
    const megabytes = Math.round(
      Object.values(sizeBefore).reduce((sum, bytes) => sum + bytes, 0) / 1024 / 1024,
    );
    const figure = `queue on ${backend}: default partitions of ${megabytes} MiB converted in ${tookSeconds.toFixed(1)} s, longest wait for a lock ${waitedMs} ms`;
    process.stderr.write(`${figure}\n`);
    reportFigure('chaos', figure);
    return async () => [
      ...(await findProblems(pool)),
      // The short form runs concurrently with other tests, so it asserts no duration.
      ...(isLong && waitedMs > LOCK_WAIT_MAX_MS ? [`a statement waited ${waitedMs} ms for a lock`] : []),
    ];
  },
};

async function findProblems(pool: Pool): Promise<string[]> {
  const missing = (await findMissingDayPartitions(pool)).map((name) => `${name} is missing`);
  const { events } = await defaultPartitionBytes(pool);
  const { rows } = await pool.query<{ name: string }>(
    `SELECT DISTINCT tableoid::regclass::text AS name FROM events WHERE account_id = 0`,
  );
  const wrongPartitions = rows
    .filter(({ name }) => !/^events_\d{8}_\d{8}$/.test(name))
    .map(({ name }) => name);
  return [
    ...missing,
    ...wrongPartitions.map((name) => `rows of the default partition are in ${name}`),
    ...(events > BYTES_MAX ? [`events_default has ${events} bytes`] : []),
  ];
}

/** Prevents the dispatchers from creating partitions while `work` runs. */
const withoutPartitionCreation = (pool: Pool, work: () => Promise<void>) =>
  inSession(pool, async (client) => {
    await eventually(() => client.query(`SELECT pg_advisory_lock(${LOCK_KEY})`));
    await work();
  });

/** Closes the connection afterwards, because an error may have left a transaction open. */
async function inSession(pool: Pool, work: (client: Transaction) => Promise<unknown>): Promise<void> {
  const client = await eventually(() => pool.connect());
  try {
    await work(client);
  } finally {
    client.release(true);
  }
}

/** Moves the rows of partitions from yesterday on to the default partition, and drops these partitions. */
const MOVE_TO_DEFAULT = `
  BEGIN;
  SET LOCAL lock_timeout = '1s';
  LOCK TABLE events, deliveries, attempts IN ACCESS EXCLUSIVE MODE;
  DO $$
  DECLARE
    partition record;
  BEGIN
    FOR partition IN
      SELECT parent.relname AS parent, child.relname AS name
      FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid JOIN pg_class parent ON parent.oid = i.inhparent
      WHERE parent.relname IN ('events', 'deliveries', 'attempts') AND parent.relkind = 'p'
        AND child.relname ~ '_[0-9]{8}$'
        AND right(child.relname, 8) >= to_char((now() AT TIME ZONE 'UTC')::date - 1, 'YYYYMMDD')
    LOOP
      EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', partition.parent, partition.name);
      EXECUTE format('INSERT INTO %I SELECT * FROM %I', partition.parent || '_default', partition.name);
      EXECUTE format('DROP TABLE %I', partition.name);
    END LOOP;
  END $$;
  COMMIT`;

/** Inserts rows of yesterday and today for an account that the load does not use. */
async function fillDefault(pool: Pool): Promise<void> {
  for (let from = 0; (await defaultPartitionBytes(pool)).events < SIZE_BYTES; from += BATCH_ROWS) {
    await pool.query(
      `INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
       SELECT (now() AT TIME ZONE 'UTC')::date - n % 2, 'filler-' || n, 0, repeat('x', 900), 'x', '{}'
       FROM generate_series($1::int, $2::int) n`,
      [from, from + BATCH_ROWS - 1],
    );
    await pool.query(
      `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name, status)
       SELECT (now() AT TIME ZONE 'UTC')::date - n % 2, 'filler-' || n, 0, 'filler', 'filler-' || n, 'job.run.started', 1, 1,
         repeat('x', 200), 'delivered'
       FROM generate_series($1::int, $2::int) n`,
      [from, from + BATCH_ROWS - 1],
    );
  }
}

const LONGEST_WAIT = `
  SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart) * 1000), 0)::int AS ms FROM pg_locks
  WHERE NOT granted AND locktype = 'relation' AND mode IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')`;

/** Returns the longest time that a read or write waited for a table while `work` ran, in milliseconds. */
async function measureLongestLockWait(pool: Pool, work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  const sample = async () => {
    const { rows } = await pool.query<{ ms: number }>(LONGEST_WAIT);
    longest = Math.max(longest, rows[0]?.ms ?? 0);
  };
  let sampling = Promise.resolve();
  const timer = setInterval(() => {
    sampling = sampling.then(sample).catch(() => undefined);
  }, SAMPLE_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
    await sampling;
  }
  return longest;
}
