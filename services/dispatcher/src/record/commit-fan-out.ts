import { eventJobId, idDay, type JobRunEvent } from '@runhook/contract';
import {
  OPEN_EVENTS_ARE_WHOLE,
  type Pool,
  recordRunsOfEvents,
  runStatement,
  storedEventData,
  storedTimestamp,
  valuesOfRuns,
} from '@runhook/database';
import { type AttemptRecord, columnsOfDelivered } from './attempts.ts';
import { askWhole, sameOpenEvent } from './open-events.ts';

export interface NewDelivery {
  id: string;
  subscriptionId: string;
  webhookName: string;
  /** Its lane has no slot for it now. */
  isParked: boolean;
  /** It is cancelled at once, and never attempted, for this reason. */
  cancelReason?: string | undefined;
  /** Its first attempt has been made already, and succeeded: its row is complete. */
  delivered?: AttemptRecord | undefined;
}

export interface FanOutRows {
  event: JobRunEvent;
  /** Of the account as the deliveries were planned; null commits them whatever it is now. */
  version: string | null;
  deliveries: NewDelivery[];
  /** How long ago they were planned, which is when they were created; 0 when omitted. */
  ageMs?: number;
  /** Its pages have stored the event, and not what it tells of its run. */
  isPaged?: boolean;
}

/** `known`: it was claimed before. `outdated`: the plan no longer fits the account, and nothing was committed. */
export type FanOutCommit = 'claimed' | 'known' | 'outdated';

/** Of a new delivery: delivered already, due at once, parked, or cancelled. */
const STATE_COLUMNS = 'status, reason, completed_at, next_attempt_at, parked_at';
/** @param isDelivered SQL */
const stateValues = (isDelivered: string) => `
  CASE WHEN ${isDelivered} THEN 'delivered' WHEN d.cancel_reason IS NULL THEN 'pending' ELSE 'cancelled' END,
  d.cancel_reason,
  CASE WHEN ${isDelivered} OR d.cancel_reason IS NOT NULL THEN now() END,
  CASE WHEN NOT (${isDelivered} OR d.is_parked) AND d.cancel_reason IS NULL THEN now() END,
  CASE WHEN d.is_parked AND d.cancel_reason IS NULL THEN now() END`;

/**
 * Claims each event and commits it with its deliveries, in one statement, if its account still is as it was planned
 * for. An event is claimed once: whoever comes second with the same id adds nothing, whether it was published twice,
 * relayed twice, or its job was interrupted.
 * Management has committed its own events before, as open ones, and their runs with them. Of events that are new here the
 * runs are recorded from what they tell: their runner publishes straight onto the queue. What is stored of an open event
 * is what is sent of it, whatever it was.
 * While `open_events` is not whole it claims nothing and answers one row, 'missing'.
 */
const COMMIT_FAN_OUT = `
  WITH input AS MATERIALIZED (
    SELECT n, day, id, account_id, event_type, "timestamp", data, version, unmatched,
           now() - age_ms * interval '1 millisecond' AS created_at
    FROM unnest($1::date[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::json[], $29::bigint[], $34::int[],
                $48::boolean[])
      WITH ORDINALITY AS i (day, id, account_id, event_type, "timestamp", data, version, age_ms, unmatched, n)
    WHERE ${OPEN_EVENTS_ARE_WHOLE}
  ), account AS MATERIALIZED (
    SELECT a.id, a.version FROM accounts a WHERE a.id IN (SELECT account_id FROM input WHERE version IS NOT NULL)
  ), outdated AS MATERIALIZED (
    SELECT i.n FROM input i LEFT JOIN account a ON a.id = i.account_id
    WHERE i.version IS NOT NULL AND i.version IS DISTINCT FROM a.version
  ), fit AS MATERIALIZED (
    SELECT i.* FROM input i WHERE i.n NOT IN (SELECT n FROM outdated)
  ), added AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, unmatched)
    SELECT f.day, f.id, f.account_id, f.event_type, f."timestamp", f.data, f.unmatched FROM fit f
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING account_id, id
  ), taken AS (
    DELETE FROM open_events o USING fit f
    WHERE ${sameOpenEvent('f.day', 'f.id', 'f.account_id')}
    RETURNING f.n
  ), corrected AS (
    UPDATE events e
    SET event_type = f.event_type, "timestamp" = f."timestamp", data = f.data, unmatched = f.unmatched, unfinished = NULL
    FROM fit f
    WHERE e.day = f.day AND e.id = f.id AND e.account_id = f.account_id AND f.n IN (SELECT n FROM taken)
      AND (e.event_type <> f.event_type OR e."timestamp" <> f."timestamp" OR e.data::text <> f.data::text
        OR f.unmatched OR e.unfinished IS NOT NULL)
  ), claimed AS MATERIALIZED (
    SELECT f.n, f.day, f.id, f.account_id, f.event_type, f.created_at, a.id IS NOT NULL AS is_new
    FROM fit f LEFT JOIN added a ON a.id = f.id AND a.account_id = f.account_id
    WHERE a.id IS NOT NULL OR f.n IN (SELECT n FROM taken)
  ), committed AS (
    INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                            ${STATE_COLUMNS}, created_at, attempt_count, http_status_code, duration_ms, started_at,
                            request_headers, response_headers, response_body, response_truncated,
                            dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms)
    SELECT c.day, d.id, c.account_id, d.subscription_id, c.id, c.event_type, d.job_id, d.run_id, d.webhook_name,
           ${stateValues('d.made > 0')}, c.created_at, d.made, d.http_status_code, d.duration_ms, d.started_at,
           d.request_headers, d.response_headers, d.response_body, d.response_truncated,
           d.dns_ms, d.connect_ms, d.tls_ms, d.first_byte_ms, d.total_ms
    FROM unnest($7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $30::boolean[], $31::text[],
                $35::int[], $36::int[], $37::int[], $38::timestamptz[], $39::json[], $40::json[], $41::text[],
                $42::boolean[], $43::int[], $44::int[], $45::int[], $46::int[], $47::int[])
      AS d (event_n, id, subscription_id, job_id, run_id, webhook_name, is_parked, cancel_reason,
            made, http_status_code, duration_ms, started_at, request_headers, response_headers, response_body,
            response_truncated, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms)
    JOIN claimed c ON c.n = d.event_n
  ), recorded AS (
    ${recordRunsOfEvents(
      13,
      `SELECT i.account_id, i.run_id
       FROM unnest($3::bigint[], $32::bigint[], $33::boolean[]) WITH ORDINALITY AS i (account_id, run_id, is_paged, n)
       LEFT JOIN claimed c ON c.n = i.n
       WHERE (i.is_paged OR c.is_new) AND ${OPEN_EVENTS_ARE_WHOLE}`,
    )}
  )
  SELECT n::int, 'claimed' AS result FROM claimed UNION ALL SELECT n::int, 'outdated' FROM outdated
  UNION ALL SELECT 0, 'missing' WHERE NOT ${OPEN_EVENTS_ARE_WHOLE}`;

/** Of an event before anything of it is sent. `known`: it was claimed before. */
export type EventState = 'open' | 'known' | 'outdated';

const STATES = `
  SELECT i.n::int, CASE WHEN NOT ${OPEN_EVENTS_ARE_WHOLE} THEN 'missing'
                    WHEN a.version IS DISTINCT FROM i.version THEN 'outdated'
                    WHEN e.id IS NOT NULL AND o.event_id IS NULL THEN 'known'
                    ELSE 'open' END AS state
  FROM unnest($1::date[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS i (day, id, account_id, version, n)
  LEFT JOIN accounts a ON a.id = i.account_id
  LEFT JOIN events e ON e.day = i.day AND e.id = i.id AND e.account_id = i.account_id
  LEFT JOIN open_events o ON ${sameOpenEvent('i.day', 'i.id', 'i.account_id')}`;

/** Of each event, in order: whether it is still to be fanned out, and its account as its deliveries are planned for. */
export async function eventStates(
  pool: Pool,
  events: readonly { event: JobRunEvent; version: string }[],
): Promise<EventState[]> {
  const values = [
    events.map(({ event }) => idDay('event', event.eventId)),
    events.map(({ event }) => event.eventId),
    events.map(({ event }) => event.accountId),
    events.map(({ version }) => version),
  ];
  const rows = await askWhole(
    pool,
    () => runStatement<{ n: number; state: EventState | 'missing' }>(pool, STATES, values, 'event-states'),
    ({ state }) => state === 'missing',
  );
  const states = new Array<EventState>(events.length).fill('outdated');
  for (const { n, state } of rows) states[n - 1] = state as EventState;
  return states;
}

// An event that somebody else claimed meanwhile gets no more deliveries: it has all of its own. The first page says of the event that
// it has not, for what it has would else be taken for all (RESTORE).
const COMMIT_PAGE = `
  WITH account AS MATERIALIZED (
    SELECT a.id FROM accounts a WHERE a.id = $3::bigint AND a.version = $7::bigint AND ${OPEN_EVENTS_ARE_WHOLE}
  ), stored AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, unfinished)
    SELECT $1::date, $2::text, account.id, $4, $5, $6::json, 'paged' FROM account
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING day, id, account_id
  ), opened AS (
    INSERT INTO open_events (day, event_id, account_id) SELECT day, id, account_id FROM stored
  ), begun AS (
    UPDATE events e SET unfinished = 'paged' FROM account
    WHERE e.day = $1::date AND e.id = $2 AND e.account_id = account.id AND e.unfinished IS DISTINCT FROM 'paged'
      AND EXISTS (SELECT FROM open_events o WHERE ${sameOpenEvent('$1::date', '$2', '$3')})
  ), added AS (
    INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                            ${STATE_COLUMNS})
    SELECT $1::date, d.id, account.id, d.subscription_id, $2, $4, $8::bigint, $9::bigint, d.webhook_name,
           ${stateValues('false')}
    FROM account, unnest($10::text[], $11::text[], $12::text[], $13::boolean[], $14::text[])
      AS d (id, subscription_id, webhook_name, is_parked, cancel_reason)
    WHERE EXISTS (SELECT FROM stored)
      OR EXISTS (SELECT FROM open_events o WHERE ${sameOpenEvent('$1::date', '$2', '$3')})
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING id
  )
  SELECT ${OPEN_EVENTS_ARE_WHOLE} AS "isWhole", EXISTS (SELECT FROM account) AS "isCurrent", ARRAY(SELECT id FROM added) AS added`;

interface PageCommit {
  [column: string]: unknown;
  isWhole: boolean;
  isCurrent: boolean;
  added: string[];
}

/**
 * Commits some of the deliveries of an event that has very many, without claiming it. Answers which of them are new:
 * those are the caller's to attempt. Null when its account is not any more as it was planned for.
 */
export async function commitPage(
  pool: Pool,
  { event, version, deliveries }: FanOutRows,
): Promise<Set<string> | null> {
  const { eventId, accountId, eventType, timestamp, data } = event;
  const values = [
    idDay('event', eventId),
    eventId,
    accountId,
    eventType,
    storedTimestamp(timestamp),
    storedEventData(event),
    version,
    data.jobId,
    data.runId,
    deliveries.map(({ id }) => id),
    deliveries.map(({ subscriptionId }) => subscriptionId),
    deliveries.map(({ webhookName }) => webhookName),
    deliveries.map(({ isParked }) => isParked),
    deliveries.map(({ cancelReason }) => cancelReason ?? null),
  ];
  const [row] = await askWhole(
    pool,
    () => runStatement<PageCommit>(pool, COMMIT_PAGE, values, 'commit-page'),
    ({ isWhole }) => !isWhole,
  );
  return row?.isCurrent ? new Set(row.added) : null;
}

/** Answers what became of each event, in order. An account's event ids must not repeat within a call. */
export async function commitFanOut(pool: Pool, unsorted: readonly FanOutRows[]): Promise<FanOutCommit[]> {
  // The same order everywhere, so that two dispatchers with the same events wait for each other, not in a circle.
  const rows = [...unsorted].sort((a, b) => (eventJobId(a.event) < eventJobId(b.event) ? -1 : 1));
  const events = rows.map(({ event }) => event);
  const deliveries = rows.flatMap(({ event, deliveries }, index) =>
    deliveries.map((delivery) => ({ event, eventNumber: index + 1, ...delivery })),
  );
  const values = [
    events.map(({ eventId }) => idDay('event', eventId)),
    events.map(({ eventId }) => eventId),
    events.map(({ accountId }) => accountId),
    events.map(({ eventType }) => eventType),
    events.map(({ timestamp }) => storedTimestamp(timestamp)),
    events.map((event) => storedEventData(event)),
    deliveries.map(({ eventNumber }) => eventNumber),
    deliveries.map(({ id }) => id),
    deliveries.map(({ subscriptionId }) => subscriptionId),
    deliveries.map(({ event }) => event.data.jobId),
    deliveries.map(({ event }) => event.data.runId),
    deliveries.map(({ webhookName }) => webhookName),
    ...valuesOfRuns(events),
    rows.map(({ version }) => version),
    deliveries.map(({ isParked }) => isParked),
    deliveries.map(({ cancelReason }) => cancelReason ?? null),
    events.map(({ data }) => data.runId),
    rows.map(({ isPaged = false }) => isPaged),
    rows.map(({ ageMs = 0 }) => Math.round(ageMs)),
    ...columnsOfDelivered(deliveries.map(({ delivered }) => delivered)),
    rows.map(({ deliveries, isPaged }) => (deliveries.length === 0 && !isPaged ? true : null)),
  ];
  const results = await askWhole(
    pool,
    () =>
      runStatement<{ n: number; result: FanOutCommit | 'missing' }>(
        pool,
        COMMIT_FAN_OUT,
        values,
        'commit-fan-out',
      ),
    ({ result }) => result === 'missing',
  );
  const resultOf = new Map<FanOutRows, FanOutCommit>();
  for (const { n, result } of results) resultOf.set(rows[n - 1] as FanOutRows, result as FanOutCommit);
  return unsorted.map((row) => resultOf.get(row) ?? 'known');
}
