import { randomUUID } from 'node:crypto';
import { createHmacSecret, createId, type IdKind } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import { testSecrets } from './factories.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
const PREFIX_CHARACTERS = 4;
/**
 * The characters of a KSUID that its time determines, to the second. The 20 others are 120 of the payload's 128 bits.
 */
const TIME_CHARACTERS = 7;
/** Rows per statement. */
const BATCH = 50_000;
/** Timeout of VACUUM, sufficient for a log of ten million rows; other queries of the pool have a limit of seconds. */
const VACUUM_TIMEOUT_MS = 600_000;

/**
 * Inserts `count` subscriptions of an account in one statement: "Webhook 1" to "Webhook n", created one second apart,
 * the last one now; every tenth is inactive. All have the same secret. Returns their ids, oldest first.
 */
export async function seedSubscriptions(
  pool: Pool,
  { accountId, count }: { accountId: number; count: number },
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => createId('subscription'));
  await pool.query(
    `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active,
       hmac_secret_ciphertext, created_at, updated_at)
     SELECT id, $1, 'Webhook ' || number, 'Tells team ' || number % 100, ARRAY['job.run.completed', 'job.run.errored'],
       '{}', 'https://receiver-' || number || '.example.com/hooks', number % 10 <> 0, $3,
       now() - (cardinality($2::text[]) - number) * interval '1 second', now()
     FROM unnest($2::text[]) WITH ORDINALITY AS s (id, number)`,
    [accountId, ids, testSecrets.encrypt(createHmacSecret())],
  );
  await pool.query('ANALYZE subscriptions');
  return ids;
}

/**
 * Inserts `count` jobs of an account in one statement: "Job 1" to "Job n", in the project and environment of the
 * arguments.
 */
export async function seedJobs(
  pool: Pool,
  job: { accountId: number; projectId: number; environmentId: number; count: number },
): Promise<void> {
  await pool.query(
    `INSERT INTO jobs (account_id, name, project_id, environment_id)
     SELECT $1, 'Job ' || number, $2, $3 FROM generate_series(1, $4::int) AS number`,
    [job.accountId, job.projectId, job.environmentId, job.count],
  );
  await pool.query('ANALYZE jobs');
}

export interface SeededLog {
  accountId: number;
  subscriptionId: string;
  count: number;
  /** Number of days of the log, evenly filled; it ends with the current minute. Creates its partitions. */
  days: number;
  /** False leaves the log without statistics, as a day is in its first minutes. */
  isAnalysed?: boolean;
}

/**
 * Inserts a log as a dispatcher writes it, each delivery with its event and its attempts. One of 1,000 deliveries
 * failed after six attempts, one of 5,000 was cancelled, one of 20,000 is pending; the others were delivered at the
 * first attempt. A run has two of them, `job.run.started` and `job.run.completed`; the first run is number 1. A million
 * deliveries take a minute or two. At the end the log is vacuumed and analysed, as autovacuum does with a log of this
 * size, unless `isAnalysed` is false.
 */
export async function seedDeliveries(pool: Pool, log: SeededLog): Promise<void> {
  const minutes = log.days * DAY_MINUTES;
  const startMs = (Math.floor(Date.now() / MINUTE_MS) - minutes + 1) * MINUTE_MS;
  await pool.query(
    `SELECT ensure_day_partitions((to_timestamp($1) AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date)`,
    [startMs / 1000],
  );
  for (let first = 0; first < log.count; first += BATCH) {
    const last = Math.min(first + BATCH, log.count) - 1;
    await seedBatch(pool, { ...log, first, last, startMs, minutes });
  }
  if (log.isAnalysed !== false) await vacuumLog(pool);
}

export async function vacuumLog(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query(`SET statement_timeout = ${VACUUM_TIMEOUT_MS}`);
    for (const table of ['events', 'deliveries', 'attempts']) {
      const vacuum = { text: `VACUUM (ANALYZE) ${table}`, query_timeout: VACUUM_TIMEOUT_MS };
      await client.query(vacuum);
    }
  } finally {
    client.release(true);
  }
}

/** Inserts the deliveries numbered from `first` to `last`, each in the minute that corresponds to its number. */
async function seedBatch(
  pool: Pool,
  batch: SeededLog & { first: number; last: number; startMs: number; minutes: number },
): Promise<void> {
  const { first, last, startMs, minutes } = batch;
  const minuteOf = (number: number) => Math.floor((number * minutes) / batch.count);
  const firstMinute = minuteOf(first);
  const minutesMs = Array.from(
    { length: minuteOf(last) - firstMinute + 1 },
    (_, index) => startMs + (firstMinute + index) * MINUTE_MS,
  );
  await pool.query(INSERT_BATCH, [
    first,
    last,
    batch.count,
    minutes * (MINUTE_MS / 1000),
    startMs / 1000,
    firstMinute,
    minutesMs.map((timeMs) => idPrefix('event', timeMs)),
    minutesMs.map((timeMs) => idPrefix('delivery', timeMs)),
    batch.accountId,
    batch.subscriptionId,
  ]);
}

export interface SeededLane {
  accountId: number;
  subscriptionId: string;
}

/**
 * Inserts `count` deliveries as fan-out leaves them while their subscriptions have no free slot: deferred, each with its
 * event, without queue jobs, distributed round-robin over the lanes. The deliveries of a lane differ in age; all are in
 * the `minutes` before the current one. A million take a minute or two.
 */
export async function seedDeferred(
  pool: Pool,
  { lanes, count, minutes }: { lanes: readonly SeededLane[]; count: number; minutes: number },
): Promise<void> {
  const startMs = (Math.floor(Date.now() / MINUTE_MS) - minutes) * MINUTE_MS;
  await pool.query(
    `SELECT ensure_day_partitions((to_timestamp($1) AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date)`,
    [startMs / 1000],
  );
  const minutesMs = Array.from({ length: minutes }, (_, index) => startMs + index * MINUTE_MS);
  const seed = randomUUID();
  for (let first = 0; first < count; first += BATCH) {
    await pool.query(INSERT_DEFERRED, [
      first,
      Math.min(first + BATCH, count) - 1,
      (minutes * MINUTE_MS) / 1000 / count,
      startMs / 1000,
      minutesMs.map((timeMs) => idPrefix('event', timeMs)),
      minutesMs.map((timeMs) => idPrefix('delivery', timeMs)),
      lanes.map(({ accountId }) => accountId),
      lanes.map(({ subscriptionId }) => subscriptionId),
      seed,
    ]);
  }
  await vacuumLog(pool);
}

/**
 * Returns the beginning of ids of a minute. It is created in the middle of the minute, because the characters that
 * follow may change an id's time by a second.
 */
function idPrefix(kind: IdKind, minuteMs: number): string {
  return createId(kind, minuteMs + MINUTE_MS / 2).slice(0, PREFIX_CHARACTERS + TIME_CHARACTERS);
}

const createdAt = (seconds: string) =>
  `to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:${seconds}"Z"')`;
const EVENT_TIME = createdAt('SS.US000');
const RUN_TIME = createdAt('SS');
// The same fields as in `storedEventData`.
const EVENT_DATA = `
  json_build_object('jobId', '12', 'jobName', 'Nightly build', 'runId', run_id::text, 'environmentId', '4',
    'environmentName', 'Production', 'engineVersion', '1.9.2', 'projectName', 'Analytics', 'projectId', '3',
    'runStatus', 'Success', 'runStatusCode', 10, 'runStatusMessage', 'None', 'runReason', 'Scheduled',
    'runStartedAt', ${RUN_TIME}, 'runFinishedAt', ${RUN_TIME})`;

const REQUEST_HEADERS = `'{"content-type":"application/json","user-agent":"Runhook/0.1.0","authorization":"***"}'`;
const RESPONSE_HEADERS = `'{"content-type":"text/plain"}'`;

// The last 20 characters of a KSUID may be any characters, so the digits of a hash are used.
const INSERT_BATCH = `
  WITH numbered AS (
    SELECT number, number / 2 + 1 AS run_id,
      CASE number % 2 WHEN 0 THEN 'job.run.started' ELSE 'job.run.completed' END AS event_type,
      CASE WHEN number % 1000 = 7 THEN 'failed' WHEN number % 5000 = 11 THEN 'cancelled'
        WHEN number % 20000 = 19998 THEN 'pending' ELSE 'delivered' END AS status,
      to_timestamp($5::float8 + number * $4::float8 / $3::float8) AS created_at,
      floor(number::float8 * $4::float8 / 60 / $3::float8)::int - $6::int + 1 AS minute,
      20 + (number * 7919) % 180 + CASE WHEN number % 40 = 0 THEN 900 ELSE 0 END AS duration_ms,
      left(md5($10::text || number), 20) AS rest
    FROM generate_series($1::bigint, $2::bigint) AS number
  ), made AS MATERIALIZED (
    SELECT *, (created_at AT TIME ZONE 'UTC')::date AS day, ($7::text[])[minute] || rest AS event_id,
      ($8::text[])[minute] || rest AS id,
      CASE status WHEN 'failed' THEN 6 WHEN 'delivered' THEN 1 ELSE 0 END AS attempt_count,
      CASE status WHEN 'failed' THEN 500 WHEN 'delivered' THEN 200 ELSE 0 END AS http_status_code
    FROM numbered
  ), event AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, run_id, created_at)
    SELECT day, event_id, $9::bigint, event_type, ${EVENT_TIME},
      ${EVENT_DATA},
      run_id, created_at
    FROM made
  ), attempt AS (
    INSERT INTO attempts (day, account_id, delivery_id, number, trigger, started_at, duration_ms, http_status_code, error_code,
      error_message, request_headers, response_headers, response_body, response_truncated)
    SELECT day, $9::bigint, id, attempt, 'automatic', created_at + attempt * interval '1 second', duration_ms, http_status_code,
      CASE status WHEN 'failed' THEN 'unsuccessful_status' END, CASE status WHEN 'failed' THEN 'The endpoint responded with 500.' END,
      ${REQUEST_HEADERS}, ${RESPONSE_HEADERS}, 'ok', false
    FROM made, generate_series(1, attempt_count) AS attempt
    WHERE status <> 'delivered'
  )
  INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name, status,
    reason, attempt_count, http_status_code, error_code, duration_ms, created_at, completed_at, next_attempt_at,
    started_at, request_headers, response_headers, response_body, response_truncated)
  SELECT day, id, $9::bigint, $10::text, event_id, event_type, 12, run_id, 'A busy webhook', status,
    CASE status WHEN 'failed' THEN 'The endpoint responded with 500.' WHEN 'cancelled' THEN 'The webhook was inactive.' END,
    attempt_count, http_status_code, CASE status WHEN 'failed' THEN 'unsuccessful_status' END,
    CASE WHEN attempt_count > 0 THEN duration_ms END, created_at,
    CASE WHEN status <> 'pending' THEN created_at + attempt_count * interval '1 second' END,
    CASE status WHEN 'pending' THEN created_at END,
    CASE status WHEN 'delivered' THEN created_at + interval '1 second' END,
    CASE status WHEN 'delivered' THEN ${REQUEST_HEADERS} END::json,
    CASE status WHEN 'delivered' THEN ${RESPONSE_HEADERS} END::json,
    CASE status WHEN 'delivered' THEN 'ok' END, NULL::boolean
  FROM made`;

const INSERT_DEFERRED = `
  WITH numbered AS (
    SELECT number, 1 + number % cardinality($8::text[]) AS lane, number + 1 AS run_id,
      to_timestamp($4::float8 + number * $3::float8) AS created_at,
      floor(number * $3::float8 / 60)::int + 1 AS minute, left(md5($9 || number), 20) AS rest
    FROM generate_series($1::int, $2::int) AS number
  ), made AS MATERIALIZED (
    SELECT *, (created_at AT TIME ZONE 'UTC')::date AS day, ($5::text[])[minute] || rest AS event_id,
      ($6::text[])[minute] || rest AS id, ($7::bigint[])[lane] AS account_id, ($8::text[])[lane] AS subscription_id
    FROM numbered
  ), event AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, created_at)
    SELECT day, event_id, account_id, 'job.run.completed', ${EVENT_TIME}, ${EVENT_DATA}, created_at
    FROM made
  )
  INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
    created_at, deferred_at)
  SELECT day, id, account_id, subscription_id, event_id, 'job.run.completed', 12, run_id, 'A dead webhook',
    created_at, created_at
  FROM made`;
