import { idDay } from '@runhook/contract';
import {
  OPEN_EVENTS_ARE_WHOLE,
  type Pool,
  runStatement,
  storedEventData,
  storedTimestamp,
} from '@runhook/database';
import { type FanOutRows, STATE_COLUMNS, stateValues } from './commit-fan-out.ts';
import { askWhole, sameOpenEvent } from './open-events.ts';

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
