import {
  distinctDays,
  type EventCursor,
  type EventInclusion,
  type EventsToRecoverPage,
  type EventToRecover,
  FIRST_PAGE_EVENTS,
  inDays,
  loadEventsToRecover,
  type Queryable,
  runStatement,
  sentEventTypes,
  statesToRecover,
  type UnnestColumns,
  unnestSql,
  unnestValues,
} from '@runhook/database';
import type { CachedSubscription } from '../policy/next-step.ts';
import { loadSubscriptions } from '../record/accounts.ts';

/** A running recovery of events. Times are in PostgreSQL's format, with microseconds. */
export interface EventRecovery {
  id: string;
  accountId: string;
  subscriptionId: string;
  include: EventInclusion;
  resendDelivered: boolean;
  since: string;
  until: string;
  createdAt: string;
  afterCreatedAt: string;
  afterId: string;
}

/** A delivery whose manual cycle a recovery has started, for the queue. */
export interface StartedDelivery {
  id: string;
  /** Digits. */
  accountId: string;
  cycle: number;
}

export interface EventsPage {
  deliveries: StartedDelivery[];
  /** Position of the next page; null if it has not changed. */
  end: (EventCursor & { day: string }) | null;
  isLast: boolean;
}

/** Maximum number of events that a pass reads, if few of them are to be sent. */
const EVENTS_READ_MAX = 1_000;

/**
 * Inserts the deliveries of the next unsent events of a recovery, and starts a manual cycle of those that exist. An
 * undispatched event belongs to its fan-out. Ids of deliveries are derived, so one that another transaction inserts is
 * not inserted twice.
 */
export async function beginEventsPage(
  transaction: Queryable,
  recovery: EventRecovery,
  pageSize: number,
): Promise<EventsPage> {
  const { accountId, subscriptionId, createdAt } = recovery;
  const [subscription] = await loadSubscriptions(transaction, [subscriptionId]);
  // Deactivated since the recovery was read; the next pass cancels it.
  if (!subscription) return { deliveries: [], end: null, isLast: false };
  const { chosen, last, isLast } = await readEvents(transaction, recovery, subscription, pageSize);
  const recipient: Recipient = {
    accountId,
    subscriptionId,
    webhookName: subscription.name,
    recoveryId: recovery.id,
  };
  const inserted = chosen.filter(({ deliveryStatus }) => deliveryStatus === null);
  const ended = chosen.filter(({ deliveryStatus }) => deliveryStatus !== null);
  const deliveries = [
    ...(await insertDeliveries(transaction, recipient, inserted)),
    ...(await beginCycles(transaction, recipient, ended, createdAt)),
  ];
  return { deliveries, end: last, isLast };
}

/** Reads events until `pageSize` are chosen, in growing pages until one is cut because its events are large. */
async function readEvents(
  transaction: Queryable,
  recovery: EventRecovery,
  { eventTypes, jobIds, filters, target }: CachedSubscription,
  pageSize: number,
): Promise<ChosenEvents> {
  const { accountId, subscriptionId, include, resendDelivered, since, until, createdAt } = recovery;
  const selection = { active: true, eventTypes: sentEventTypes(eventTypes, target.format), jobIds, filters };
  const chosen: EventToRecover[] = [];
  let last: EventToRecover | null = null;
  let read = 0;
  for (let limit = FIRST_PAGE_EVENTS; ; limit = Math.min(limit * 2, EVENTS_READ_MAX - read)) {
    const page = await loadEventsToRecover(transaction, {
      ...{ accountId, subscriptionId, since, until, endedUntil: createdAt, selection, limit },
      after: last ?? { createdAt: recovery.afterCreatedAt, id: recovery.afterId },
    });
    read += page.events.length;
    const next = chooseEvents(page, { include, resendDelivered, pageSize: pageSize - chosen.length });
    chosen.push(...next.chosen);
    const isComplete = next.last === (page.events.at(-1) ?? null);
    last = next.last ?? last;
    const isEnough = chosen.length === pageSize || read >= EVENTS_READ_MAX || page.events.length < limit;
    if (next.isLast || !isComplete || isEnough) return { chosen, last, isLast: next.isLast };
  }
}

interface ChosenEvents {
  chosen: EventToRecover[];
  last: EventToRecover | null;
  isLast: boolean;
}

/**
 * Chooses the events of a page that are sent. A page ends before an event that is being fanned out, perhaps for the
 * subscriptions of a moment ago; its fan-out is then on record in a later pass. One that is not after a minute is left
 * to it, because it waits in the queue.
 */
function chooseEvents(
  { events, isLast }: EventsToRecoverPage,
  {
    include,
    resendDelivered,
    pageSize,
  }: Pick<EventRecovery, 'include' | 'resendDelivered'> & { pageSize: number },
): ChosenEvents {
  const states = statesToRecover(include, resendDelivered);
  const chosen: EventToRecover[] = [];
  let last: EventToRecover | null = null;
  for (const event of events) {
    const mustWait = event.state === 'undispatched' && event.isRecent;
    if (mustWait || chosen.length === pageSize) return { chosen, last, isLast: false };
    if (states.includes(event.state)) chosen.push(event);
    last = event;
  }
  return { chosen, last, isLast };
}

interface Recipient {
  accountId: string;
  subscriptionId: string;
  webhookName: string;
  recoveryId: string;
}

const INSERTED_COLUMNS: UnnestColumns<EventToRecover> = {
  day: ['date', ({ day }) => day],
  id: ['text', ({ deliveryId }) => deliveryId],
  event_id: ['text', ({ id }) => id],
  event_type: ['text', ({ eventType }) => eventType],
  job_id: ['bigint', ({ jobId }) => jobId],
  run_id: ['bigint', ({ runId }) => runId],
};

// The day is that of the event, so that the delivery expires with it.
const INSERT_DELIVERIES = `
  INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                          status, trigger, next_attempt_at, recovery_id)
  SELECT i.day, i.id, $1, $2, i.event_id, i.event_type, i.job_id, i.run_id, $3, 'pending', 'manual', now(), $4
  FROM ${unnestSql(INSERTED_COLUMNS, 5, 'i')}
  ON CONFLICT (day, id, account_id) DO NOTHING
  RETURNING id, account_id AS "accountId", cycle`;

async function insertDeliveries(
  transaction: Queryable,
  { accountId, subscriptionId, webhookName, recoveryId }: Recipient,
  events: readonly EventToRecover[],
): Promise<StartedDelivery[]> {
  if (events.length === 0) return [];
  const values = [
    accountId,
    subscriptionId,
    webhookName,
    recoveryId,
    ...unnestValues(INSERTED_COLUMNS, events),
  ];
  return await runStatement<StartedDelivery & Columns>(
    transaction,
    INSERT_DELIVERIES,
    values,
    'insert-recovered-deliveries',
  );
}

interface Columns {
  [column: string]: unknown;
}

const ATTEMPT_COLUMNS = [
  'started_at',
  'request_headers',
  'response_headers',
  'response_body',
  'response_truncated',
  'dns_ms',
  'connect_ms',
  'tls_ms',
  'first_byte_ms',
  'total_ms',
  'format',
];
const movedColumn = (column: string) =>
  column === 'response_truncated' ? 'coalesce(response_truncated, false)' : column;

// Deliveries that another call has started again since they were read are skipped. A successful first attempt is stored
// in the delivery's row, so it is moved to a row of `attempts` before the next one, as by a redelivery.
const BEGIN_CYCLES = `
  WITH locked AS MATERIALIZED (
    SELECT d.* FROM unnest($1::date[], $2::text[], $3::text[]) AS i (day, id, status)
    JOIN deliveries d ON d.day = i.day AND d.id = i.id AND d.account_id = $5
    WHERE d.status = i.status AND d.completed_at <= $6::timestamptz AND ${inDays('$4', 'i', 'd')}
    FOR UPDATE OF d
  ), moved AS (
    INSERT INTO attempts (day, account_id, delivery_id, number, trigger, duration_ms, http_status_code,
                          ${ATTEMPT_COLUMNS.join(', ')})
    SELECT day, account_id, id, 1, 'automatic', duration_ms, http_status_code, ${ATTEMPT_COLUMNS.map(movedColumn).join(', ')}
    FROM locked WHERE started_at IS NOT NULL
  )
  UPDATE deliveries d
  SET status = 'pending', reason = NULL, cycle = d.attempt_count, trigger = 'manual', completed_at = NULL,
    next_attempt_at = now(), recovery_id = $7, ${ATTEMPT_COLUMNS.map((column) => `${column} = NULL`).join(', ')}
  FROM locked l
  WHERE d.day = l.day AND d.id = l.id AND d.account_id = $5 AND ${inDays('$4', 'd')}
  RETURNING d.id, d.account_id AS "accountId", d.cycle`;

async function beginCycles(
  transaction: Queryable,
  { accountId, recoveryId }: Recipient,
  events: readonly EventToRecover[],
  endedUntil: string,
): Promise<StartedDelivery[]> {
  if (events.length === 0) return [];
  const days = events.map(({ day }) => day);
  const ids = events.map(({ deliveryId }) => deliveryId);
  const statuses = events.map(({ deliveryStatus }) => deliveryStatus);
  const values = [days, ids, statuses, distinctDays(days), accountId, endedUntil, recoveryId];
  return await runStatement<StartedDelivery & Columns>(
    transaction,
    BEGIN_CYCLES,
    values,
    'begin-recovered-cycles',
  );
}
