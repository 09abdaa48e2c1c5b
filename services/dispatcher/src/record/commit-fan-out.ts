import { eventJobId, type JobRunEvent } from '@runhook/contract';
import {
  GIVEN_EVENT,
  type Given,
  givenRows,
  givenSize,
  givenValues,
  OPEN_EVENTS_ARE_WHOLE,
  type Pool,
  recordRunsOfEvents,
  runStatement,
  valuesOfRuns,
} from '@runhook/database';
import { type AttemptRecord, GIVEN_DELIVERED } from './attempts.ts';
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
  /** Management has committed it, as it is here, a moment ago, and its run with it. */
  isStored?: boolean;
}

/** `known`: it was claimed before. `outdated`: the plan no longer fits the account, and nothing was committed. */
export type FanOutCommit = 'claimed' | 'known' | 'outdated';

/** Of a new delivery: delivered already, due at once, parked, or cancelled. */
export const STATE_COLUMNS = 'status, reason, completed_at, next_attempt_at, parked_at';
/** @param isDelivered SQL */
export const stateValues = (isDelivered: string) => `
  CASE WHEN ${isDelivered} THEN 'delivered' WHEN d.cancel_reason IS NULL THEN 'pending' ELSE 'cancelled' END,
  d.cancel_reason,
  CASE WHEN ${isDelivered} OR d.cancel_reason IS NOT NULL THEN now() END,
  CASE WHEN NOT (${isDelivered} OR d.is_parked) AND d.cancel_reason IS NULL THEN now() END,
  CASE WHEN d.is_parked AND d.cancel_reason IS NULL THEN now() END`;

const DELIVERED_COLUMNS = Object.keys(GIVEN_DELIVERED).join(', ');
const GIVEN_DELIVERY: Given<NewDelivery & { event: JobRunEvent; eventNumber: number }> = {
  event_n: ['bigint', ({ eventNumber }) => eventNumber],
  id: ['text', ({ id }) => id],
  subscription_id: ['text', ({ subscriptionId }) => subscriptionId],
  job_id: ['bigint', ({ event }) => event.data.jobId],
  run_id: ['bigint', ({ event }) => event.data.runId],
  webhook_name: ['text', ({ webhookName }) => webhookName],
  is_parked: ['boolean', ({ isParked }) => isParked],
  cancel_reason: ['text', ({ cancelReason }) => cancelReason],
  ...GIVEN_DELIVERED,
};

/**
 * A part of a statement: the deliveries of the events of `claimed` (n, day, id, account_id, event_type, created_at).
 * @param first the number of the first parameter of {@link valuesOfDeliveries}
 */
function insertDeliveries(first: number): string {
  return `
    INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                            ${STATE_COLUMNS}, created_at, ${DELIVERED_COLUMNS})
    SELECT c.day, d.id, c.account_id, d.subscription_id, c.id, c.event_type, d.job_id, d.run_id, d.webhook_name,
           ${stateValues('d.attempt_count > 0')}, c.created_at, ${DELIVERED_COLUMNS}
    FROM ${givenRows(GIVEN_DELIVERY, first, 'd')}
    JOIN claimed c ON c.n = d.event_n`;
}

function valuesOfDeliveries(rows: readonly FanOutRows[]): unknown[][] {
  const deliveries = rows.flatMap(({ event, deliveries }, index) =>
    deliveries.map((delivery) => ({ event, eventNumber: index + 1, ...delivery })),
  );
  return givenValues(GIVEN_DELIVERY, deliveries);
}

const { timestamp, data, ...nameOfEvent } = GIVEN_EVENT;
const GIVEN_STORED = {
  ...nameOfEvent,
  age_ms: ['int', ({ ageMs = 0 }) => Math.round(ageMs)],
} as const satisfies Given<FanOutRows>;
const CREATED_AT = `now() - age_ms * interval '1 millisecond' AS created_at`;

/**
 * Parts of a statement: those of `events` that are open are `claimed`, and open no more. What is worked out in `RETURNING` Citus
 * refuses (docs/scaling.md#a-record-that-can-be-spread).
 */
const takeOpen = (events: string) => `
  taken AS (
    DELETE FROM open_events o USING ${events} i WHERE ${sameOpenEvent('i.day', 'i.id', 'i.account_id')} RETURNING i.n
  ), claimed AS MATERIALIZED (
    SELECT i.* FROM ${events} i WHERE i.n IN (SELECT n FROM taken)
  )`;

/**
 * The way of what is reported over REST: management has committed the event and its run, so that all that is left is its row of
 * `open_events`, and the deliveries. Whether the event is stored as it is here is not looked at, nor the account's version.
 */
const CLAIM_STORED = `
  WITH input AS MATERIALIZED (
    SELECT *, ${CREATED_AT} FROM ${givenRows(GIVEN_STORED, 1, 'i', 'n')} WHERE ${OPEN_EVENTS_ARE_WHOLE}
  ), ${takeOpen('input')}, committed AS (
    ${insertDeliveries(1 + givenSize(GIVEN_STORED))}
  )
  SELECT n::int, 'claimed' AS result FROM claimed`;

const GIVEN_EVENTS: Given<FanOutRows> = {
  ...GIVEN_EVENT,
  version: ['bigint', ({ version }) => version],
  age_ms: GIVEN_STORED.age_ms,
  unmatched: ['boolean', ({ deliveries, isPaged }) => (deliveries.length === 0 && !isPaged) || null],
  run_id: ['bigint', ({ event }) => event.data.runId],
  is_paged: ['boolean', ({ isPaged = false }) => isPaged],
};
const FIRST_OF_DELIVERIES = 1 + givenSize(GIVEN_EVENTS);
const FIRST_OF_RUNS = FIRST_OF_DELIVERIES + givenSize(GIVEN_DELIVERY);

/**
 * Of events whose accounts still are as the deliveries were planned for, `fit`; the others are `outdated`.
 * @param where a condition for all of them
 */
const fitEvents = (where: string) => `
  input AS MATERIALIZED (
    SELECT *, ${CREATED_AT} FROM ${givenRows(GIVEN_EVENTS, 1, 'i', 'n')} WHERE ${where}
  ), account AS MATERIALIZED (
    SELECT a.id, a.version FROM accounts a WHERE a.id IN (SELECT account_id FROM input WHERE version IS NOT NULL)
  ), outdated AS MATERIALIZED (
    SELECT i.n FROM input i LEFT JOIN account a ON a.id = i.account_id
    WHERE i.version IS NOT NULL AND i.version IS DISTINCT FROM a.version
  ), fit AS MATERIALIZED (
    SELECT i.* FROM input i WHERE i.n NOT IN (SELECT n FROM outdated)
  )`;
const OUTDATED = `SELECT n::int, 'outdated' AS result FROM outdated`;

/**
 * The way of what is published straight onto the queue: nobody has the event yet, and its run is recorded from what it tells.
 * An event that is on record already is left alone.
 */
const COMMIT_NEW = `
  WITH ${fitEvents('true')}, added AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, unmatched)
    SELECT f.day, f.id, f.account_id, f.event_type, f."timestamp", f.data, f.unmatched FROM fit f
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING account_id, id
  ), claimed AS MATERIALIZED (
    SELECT f.* FROM fit f JOIN added a ON a.id = f.id AND a.account_id = f.account_id
  ), committed AS (
    ${insertDeliveries(FIRST_OF_DELIVERIES)}
  ), recorded AS (
    ${recordRunsOfEvents(FIRST_OF_RUNS, 'SELECT account_id, run_id FROM claimed')}
  )
  SELECT n::int, 'claimed' AS result FROM claimed UNION ALL ${OUTDATED}`;

/**
 * Of events that are on record: claims those that are open, whoever stored them, a page of them perhaps, which leaves what they tell
 * of their run to the claim. What is stored of an open event is what is sent of it, whatever it was.
 * While `open_events` is not whole it claims nothing and answers one row, 'missing'.
 */
const CLAIM_OPEN = `
  WITH ${fitEvents(OPEN_EVENTS_ARE_WHOLE)}, ${takeOpen('fit')}, corrected AS (
    UPDATE events e
    SET event_type = c.event_type, "timestamp" = c."timestamp", data = c.data, unmatched = c.unmatched, unfinished = NULL
    FROM claimed c
    WHERE e.day = c.day AND e.id = c.id AND e.account_id = c.account_id
      AND (e.event_type <> c.event_type OR e."timestamp" <> c."timestamp" OR e.data::text <> c.data::text
        OR c.unmatched OR e.unfinished IS NOT NULL)
  ), committed AS (
    ${insertDeliveries(FIRST_OF_DELIVERIES)}
  ), recorded AS (
    ${recordRunsOfEvents(FIRST_OF_RUNS, 'SELECT account_id, run_id FROM input WHERE is_paged')}
  )
  SELECT n::int, 'claimed' AS result FROM claimed UNION ALL ${OUTDATED}
  UNION ALL SELECT 0, 'missing' WHERE NOT ${OPEN_EVENTS_ARE_WHOLE}`;

/** What a statement found out of events; those that it says nothing of are for the next. */
interface Found {
  [column: string]: unknown;
  n: number;
  result: FanOutCommit | 'missing';
}

const valuesOfEvents = (rows: readonly FanOutRows[]) => [
  ...givenValues(GIVEN_EVENTS, rows),
  ...valuesOfDeliveries(rows),
  ...valuesOfRuns(rows.map(({ event }) => event)),
];

/** Each costs by what it may have to do, so the usual ones may do little. */
const STATEMENTS = {
  async stored(pool: Pool, rows: readonly FanOutRows[]): Promise<Found[]> {
    const values = [...givenValues(GIVEN_STORED, rows), ...valuesOfDeliveries(rows)];
    return await runStatement<Found>(pool, CLAIM_STORED, values, 'claim-stored');
  },
  async new(pool: Pool, rows: readonly FanOutRows[]): Promise<Found[]> {
    return await runStatement<Found>(pool, COMMIT_NEW, valuesOfEvents(rows), 'commit-new');
  },
  async open(pool: Pool, rows: readonly FanOutRows[]): Promise<Found[]> {
    const values = valuesOfEvents(rows);
    return await askWhole(
      pool,
      () => runStatement<Found>(pool, CLAIM_OPEN, values, 'claim-open'),
      ({ result }) => result === 'missing',
    );
  },
};

/**
 * Claims each event and commits it with its deliveries, in one statement, if its account still is as it was planned
 * for. An event is claimed once: whoever comes second with the same id adds nothing, whether it was published twice,
 * relayed twice, or its job was interrupted.
 * Answers what became of each, in order. An account's event ids must not repeat within a call. If it fails, some may be
 * claimed, and are known when it is asked again, as after an answer that was lost.
 */
export async function commitFanOut(pool: Pool, unsorted: readonly FanOutRows[]): Promise<FanOutCommit[]> {
  // The same order everywhere, so that two dispatchers with the same events wait for each other, not in a circle.
  const rows = [...unsorted].sort((a, b) => (eventJobId(a.event) < eventJobId(b.event) ? -1 : 1));
  const results = new Map<FanOutRows, FanOutCommit>();
  const ask = async (statement: keyof typeof STATEMENTS, asked: readonly FanOutRows[]) => {
    if (asked.length === 0) return;
    for (const { n, result } of await STATEMENTS[statement](pool, asked))
      results.set(asked[n - 1] as FanOutRows, result as FanOutCommit);
  };
  const isLeft = (row: FanOutRows) => !results.has(row);
  // What says that its pages are all there, or that nobody is to hear of it, is on record nearly always: asked for there first.
  const isMarked = ({ isStored, isPaged, deliveries }: FanOutRows) =>
    isPaged || (isStored && deliveries.length === 0);
  await ask(
    'stored',
    rows.filter((row) => row.isStored && !isMarked(row)),
  );
  await ask(
    'new',
    rows.filter((row) => isLeft(row) && !isMarked(row)),
  );
  await ask('open', rows.filter(isLeft));
  await ask(
    'new',
    rows.filter((row) => isLeft(row) && isMarked(row)),
  );
  return unsorted.map((row) => results.get(row) ?? 'known');
}
