import type { JobRunEvent } from '@runhook/contract';
import {
  digitsOf,
  eventDataField,
  GIVEN_EVENT,
  type Given,
  givenRows,
  givenValues,
  inTransaction,
  OPEN_EVENTS_ARE_WHOLE,
  type Pool,
  runStatement,
} from '@runhook/database';

/*
 * `open_events` names the events that nobody has fanned out, and is not in the log of PostgreSQL: a crash, and whoever takes the
 * server's place, begins with an empty one. `open_events_whole` is emptied with it, so its row says that nothing is missing. Who
 * decides by `open_events` looks at that row in the same statement, and while it is missing nobody claims an event
 * (docs/adr/0057-open-events-are-found-again.md).
 */

/** SQL that finds an `open_events o` by its index, which has a few digits of its id. */
export const sameOpenEvent = (day: string, eventId: string, accountId: string) =>
  `${digitsOf('o.event_id')} = ${digitsOf(eventId)} AND o.event_id = ${eventId} AND o.day = ${day} AND o.account_id = ${accountId}`;

/** Asks a statement that decides by `open_events`, again once that is whole if it says that it was not. */
export async function askWhole<Row>(
  pool: Pool,
  ask: () => Promise<Row[]>,
  isMissing: (row: Row) => boolean,
): Promise<Row[]> {
  while (true) {
    const rows = await ask();
    if (!rows.some(isMissing)) return rows;
    await restoreOpenEvents(pool);
  }
}

/** An event, and the version of its account that its deliveries are planned for. */
export interface PlannedEvent {
  event: JobRunEvent;
  version: string;
}

const GIVEN_PLANNED: Given<PlannedEvent> = {
  day: GIVEN_EVENT.day,
  id: GIVEN_EVENT.id,
  account_id: GIVEN_EVENT.account_id,
  version: ['bigint', ({ version }) => version],
};

/** Of an event before anything of it is sent. `known`: it was claimed before. */
export type EventState = 'open' | 'known' | 'outdated';

const STATES = `
  SELECT i.n::int, CASE WHEN NOT ${OPEN_EVENTS_ARE_WHOLE} THEN 'missing'
                    WHEN a.version IS DISTINCT FROM i.version THEN 'outdated'
                    WHEN e.id IS NOT NULL AND o.event_id IS NULL THEN 'known'
                    ELSE 'open' END AS state
  FROM ${givenRows(GIVEN_PLANNED, 1, 'i', 'n')}
  LEFT JOIN accounts a ON a.id = i.account_id
  LEFT JOIN events e ON e.day = i.day AND e.id = i.id AND e.account_id = i.account_id
  LEFT JOIN open_events o ON ${sameOpenEvent('i.day', 'i.id', 'i.account_id')}`;

/** Of each event, in order: whether it is still to be fanned out, and its account as its deliveries are planned for. */
export async function eventStates(pool: Pool, events: readonly PlannedEvent[]): Promise<EventState[]> {
  const values = givenValues(GIVEN_PLANNED, events);
  const rows = await askWhole(
    pool,
    () => runStatement<{ n: number; state: EventState | 'missing' }>(pool, STATES, values, 'event-states'),
    ({ state }) => state === 'missing',
  );
  const states = new Array<EventState>(events.length).fill('outdated');
  for (const { n, state } of rows) states[n - 1] = state as EventState;
  return states;
}

/** Longer than any transaction of ours that commits an event, by far. */
const CHECKPOINT_AGE_MINUTES = 10;
/** How long what has been committed since the checkpoint may take to look through. */
const RESTORE_MAX_MS = 600_000;

/** As `isWhole` is found under the lock, nobody else is at it, or has done it meanwhile. */
const TURN = `SELECT pg_advisory_xact_lock(hashtext('runhook.open_events'))`;
const STATE = `
  SELECT ${OPEN_EVENTS_ARE_WHOLE} AS "isWhole", c.at::text AS at, next.at::text AS next, next.at > c.at + interval '1 minute' AS "isDue"
  FROM open_events_checkpoint c, (SELECT now() - interval '${CHECKPOINT_AGE_MINUTES} minutes' AS at) AS next`;

interface State {
  [column: string]: unknown;
  isWhole: boolean;
  /** Times as PostgreSQL writes them, to the microsecond. */
  at: string;
  next: string;
  isDue: boolean;
}

/**
 * What was committed since the checkpoint, and what was unfinished then: it is open unless it has a delivery or says that it
 * has none. In one statement, whose snapshot shows with each event whether it is there already: management goes on committing
 * both. Each is looked for by its run, in its day: a join might read all of the log in place of it.
 */
export const RESTORE = `
  INSERT INTO open_events (day, event_id, account_id, created_at)
  SELECT e.day, e.id, e.account_id, e.created_at
  FROM (
    SELECT day, id, account_id, created_at, data, unfinished FROM events
    WHERE created_at >= $1::timestamptz AND unmatched IS NOT TRUE AND unfinished IS NULL
    UNION ALL
    SELECT day, id, account_id, created_at, data, unfinished FROM events
    WHERE unfinished IS NOT NULL AND unmatched IS NOT TRUE
  ) AS e
  WHERE (e.unfinished = 'paged' OR (
      SELECT true FROM deliveries d
      WHERE d.day = e.day AND d.account_id = e.account_id AND d.event_id = e.id
        AND d.run_id = (${eventDataField('e.data', 'runId')})::bigint
      LIMIT 1) IS NULL)
    AND (SELECT true FROM open_events o WHERE ${sameOpenEvent('e.day', 'e.id', 'e.account_id')} LIMIT 1) IS NULL`;
// Nothing is known of a day that has just begun, and any index of it seems as good as another.
const UNCOUNTED = `
  SELECT c.oid::regclass::text AS name
  FROM pg_partition_tree('deliveries') p JOIN pg_class c ON c.oid = p.relid
  WHERE p.isleaf AND c.reltuples < 0 AND pg_relation_size(c.oid) > 0`;
const WHOLE_AGAIN = 'INSERT INTO open_events_whole DEFAULT VALUES';

/** Finds the open events again, if a crash of PostgreSQL has emptied their table. */
export async function restoreOpenEvents(pool: Pool): Promise<void> {
  await inTransaction(pool, async (transaction) => {
    await runStatement(transaction, TURN, []);
    const [state] = await runStatement<State>(transaction, STATE, []);
    if (state === undefined) throw new Error('the table open_events_checkpoint has lost its row');
    if (state.isWhole) return;
    await runStatement(transaction, `SET LOCAL statement_timeout = ${RESTORE_MAX_MS}`, []);
    for (const { name } of await runStatement<{ name: string }>(transaction, UNCOUNTED, []))
      await runStatement(transaction, `ANALYZE ${name}`, []);
    await runStatement(transaction, RESTORE, [state.at], undefined, RESTORE_MAX_MS);
    await runStatement(transaction, WHOLE_AGAIN, []);
  });
}

/** Of a turn: an outage leaves millions, which one statement would not get done within its time. */
const MARKED_MAX = 10_000;
const NEXT = `
  SELECT least($2::timestamptz, (
    SELECT created_at FROM open_events WHERE created_at >= $1::timestamptz ORDER BY created_at OFFSET $3 LIMIT 1))::text AS next`;
// What is fanned out meanwhile is marked for nothing: it has deliveries then, or says that it has none.
const MARK_LATE = `
  UPDATE events e SET unfinished = 'late'
  FROM open_events o
  WHERE o.created_at >= $1::timestamptz AND o.created_at < $2::timestamptz
    AND e.day = o.day AND e.id = o.event_id AND e.account_id = o.account_id AND e.unfinished IS NULL`;
const ADVANCE = 'UPDATE open_events_checkpoint SET at = $1::timestamptz';

/**
 * Moves the checkpoint on to some minutes ago, and marks what has been open since before that: so a crash leaves minutes to look
 * through, however long something is open. A missing table is made anew first.
 * @param markedMax of one call, but for those of the same moment
 */
export async function keepOpenEvents(pool: Pool, markedMax = MARKED_MAX): Promise<void> {
  const [state] = await runStatement<State>(pool, STATE, [], 'open-events-state');
  if (!state?.isWhole) await restoreOpenEvents(pool);
  if (!state?.isDue) return;
  await inTransaction(pool, async (transaction) => {
    await runStatement(transaction, TURN, []);
    const [now] = await runStatement<State>(transaction, STATE, []);
    if (!now?.isWhole || !now.isDue) return;
    const [row] = await runStatement<{ next: string }>(transaction, NEXT, [now.at, now.next, markedMax]);
    await runStatement(transaction, MARK_LATE, [now.at, row?.next]);
    await runStatement(transaction, ADVANCE, [row?.next]);
  });
}
