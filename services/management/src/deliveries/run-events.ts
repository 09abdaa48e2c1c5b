// SQL by hand: finds a run’s deliveries by the index of runs, and its undispatched events, which are few.
import {
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  idDay,
  integerIdFromText,
  isStoredRunStatus,
  type MatchedEvent,
  RUN_STATUS_CODES,
  RUN_TIMES,
} from '@runhook/contract';
import { column, distinctDays, inDays, type Pool, queryRows, type RowOf } from '@runhook/database';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { NotFoundError } from '../http/errors.ts';
import { QueryReader } from '../http/query-parameters.ts';
import { microsOf } from './delivery.ts';

/** Path of what webhooks heard about a run. */
export const RUN_PATH = '/api/v3/accounts/:account_id/webhooks/run/:run_id';

export const RUN_EVENT_STATES = ['matched', 'waiting', 'unmatched', 'not_reported', 'expired'] as const;

/** An event of a run, with or without deliveries; times are microseconds since the epoch, as digits. */
export interface RunEventView {
  event_type: EventType;
  /** Null if the event has no deliveries, from which its id is read. */
  event_id: string | null;
  /** Time of the fan-out, or of its recording if a recovery sent it; for an event without deliveries, its time in the run. */
  occurred_at: string;
  state: (typeof RUN_EVENT_STATES)[number];
  delivery_count: number;
}

const RUN_ROW_COLUMNS = {
  status: isStoredRunStatus,
  job_id: column.digits,
  job_name: column.text,
  environment_id: column.digits,
  environment_name: column.text,
  project_id: column.digits,
  project_name: column.text,
  has_started: column.flag,
  start_reported: column.flag,
  created_at: column.digits,
  finished_at: column.orNull(column.digits),
  errored_at: column.orNull(column.digits),
  artifacts_ingested_at: column.orNull(column.digits),
  has_log: column.flag,
};
export type RunRow = RowOf<typeof RUN_ROW_COLUMNS>;

const RUN_TIME_COLUMNS = ['created_at', 'finished_at', 'errored_at', 'artifacts_ingested_at'] as const;

// Retention has dropped all days before the oldest partition.
const SELECT_RUN = `
  SELECT status, job_id, job_name, environment_id, environment_name, project_id, project_name,
    started_at IS NOT NULL AS has_started, start_reported, ${RUN_TIME_COLUMNS.map((time) => `${microsOf(time)} AS ${time}`).join(', ')},
    created_at >= coalesce((
      SELECT min(to_date(substring(child.relname FROM '_([0-9]{8})'), 'YYYYMMDD'))
      FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
      WHERE i.inhparent = 'deliveries'::regclass AND child.relname <> 'deliveries_default')::timestamp, '-infinity') AS has_log
  FROM runs WHERE account_id = $1 AND id = $2`;

const MATCHED_EVENT = {
  event_id: column.text,
  event_type: column.oneOf(EVENT_TYPES),
  first_delivery_at: column.digits,
  fan_out_at: column.orNull(column.digits),
  delivery_count: column.integer,
};

// A recovery inserts deliveries of events that were matched with webhooks long before.
const SELECT_MATCHED = `
  SELECT event_id, event_type, ${microsOf('min(created_at)')} AS first_delivery_at,
    ${microsOf('min(created_at) FILTER (WHERE recovery_id IS NULL)')} AS fan_out_at, count(*)::int AS delivery_count
  FROM deliveries WHERE account_id = $1 AND run_id = $2 GROUP BY event_id, event_type`;

const RECORDED_EVENT = { id: column.text, recorded_at: column.digits };
const SELECT_RECORDED = `
  SELECT e.id, ${microsOf('e.created_at')} AS recorded_at
  FROM unnest($1::date[], $2::text[]) AS k (day, id)
  JOIN events e ON e.day = k.day AND e.id = k.id AND e.account_id = $3
  WHERE ${inDays('$4', 'k', 'e')}`;

/** Maximum number of undispatched events of an account that are read; if it is reached, all count as undispatched. */
const UNDISPATCHED_MAX = 10_000;
// Compares the column run_id: an expression over the JSON would fail for the whole account if one row is malformed.
const UNDISPATCHED_EVENT = { event_type: column.text };
const SELECT_UNDISPATCHED = `
  SELECT e.event_type FROM (SELECT day, event_id FROM undispatched_events WHERE account_id = $1 LIMIT ${UNDISPATCHED_MAX}) u
  JOIN events e ON e.day = u.day AND e.id = u.event_id AND e.account_id = $1
  WHERE e.run_id = $2
  UNION ALL
  SELECT 'all' WHERE
    (SELECT count(*) FROM (SELECT 1 FROM undispatched_events WHERE account_id = $1 LIMIT ${UNDISPATCHED_MAX}) u) = ${UNDISPATCHED_MAX}`;

/** Lists a run's events with their states, in the order in which a run sends them (docs/contract.md#deliveries). */
export function runEventsEndpoint({ pool }: { pool: Pool }): AccountEndpoint {
  return {
    method: 'GET',
    path: `${RUN_PATH}/events`,
    access: READ_WEBHOOKS,
    async handle({ account, param, query }) {
      new QueryReader(query).check();
      const runId = integerIdFromText(param('run_id'));
      if (runId === null) throw new NotFoundError();
      const { run, events } = await readRunEvents(pool, { accountId: account.id, runId });
      if (run === null && events.length === 0) throw new NotFoundError();
      return { code: 200, data: events };
    },
  };
}

/** Reads a run, null if it is not on record, and its events in the order of sending. */
export async function readRunEvents(
  pool: Pool,
  { accountId, runId }: { accountId: number; runId: number },
): Promise<{ run: RunRow | null; events: RunEventView[] }> {
  const key = [accountId, runId];
  // Undispatched events are read first, so that events that are fanned out meanwhile appear as deliveries.
  const undispatchedTypes = new Set(
    (await queryRows(pool, UNDISPATCHED_EVENT, SELECT_UNDISPATCHED, key)).map(({ event_type }) => event_type),
  );
  const [[run = null], matchedEvents] = await Promise.all([
    queryRows(pool, RUN_ROW_COLUMNS, SELECT_RUN, key),
    readMatchedEvents(pool, { accountId, runId }),
  ]);
  const events = matchedEvents.map((event): RunEventView => ({ ...event, state: 'matched' }));
  for (const event_type of run ? expectedTypes(run) : []) {
    if (matchedEvents.some((event) => event.event_type === event_type)) continue;
    const state = stateOf(event_type, run as RunRow, undispatchedTypes);
    const occurred_at = occurredAt(event_type, run as RunRow);
    events.push({ event_type, event_id: null, occurred_at, state, delivery_count: 0 });
  }
  events.sort(
    (one, other) =>
      ORDERED_TYPES.indexOf(one.event_type) - ORDERED_TYPES.indexOf(other.event_type) ||
      Number(BigInt(one.occurred_at) - BigInt(other.occurred_at)),
  );
  return { run, events };
}

/** Reads the events that have deliveries. The time of one whose deliveries are all of recoveries is that of its recording. */
async function readMatchedEvents(
  pool: Pool,
  { accountId, runId }: { accountId: number; runId: number },
): Promise<Omit<RunEventView, 'state'>[]> {
  const rows = await queryRows(pool, MATCHED_EVENT, SELECT_MATCHED, [accountId, runId]);
  const ids = rows.filter((row) => row.fan_out_at === null).map((row) => row.event_id);
  const days = ids.map((id) => idDay('event', id));
  const values = [days, ids, accountId, distinctDays(days)];
  const recorded = ids.length === 0 ? [] : await queryRows(pool, RECORDED_EVENT, SELECT_RECORDED, values);
  const recordedAt = new Map(recorded.map(({ id, recorded_at: at }) => [id, at]));
  return rows.map(({ first_delivery_at: firstAt, fan_out_at: fanOutAt, ...event }) => ({
    ...event,
    occurred_at: fanOutAt ?? recordedAt.get(event.event_id) ?? firstAt,
  }));
}

/** Events that wait for the artifacts come last. */
const ORDERED_TYPES = EVENT_TYPES.toSorted(
  (one, other) =>
    Number(EVENT_TYPE_TABLE[one].afterArtifacts) - Number(EVENT_TYPE_TABLE[other].afterArtifacts),
);

/** Facts of a run's row about its events. Of the times, only their presence matters. */
export type RunProgress = Pick<
  RunRow,
  'status' | 'has_started' | 'start_reported' | 'finished_at' | 'errored_at' | 'artifacts_ingested_at'
>;

/** Returns the types of the events that the job runner has reported. */
export function reportedTypes(run: RunProgress): EventType[] {
  return expectedTypes(run).filter((type) => isReported(type, run));
}

/** Returns what subscriptions select by, of the event of a type that the run has. */
export function selectableEvent(
  eventType: EventType,
  run: Pick<RunRow, 'status' | 'job_id' | 'environment_id' | 'project_id'>,
): MatchedEvent {
  const { statuses } = EVENT_TYPE_TABLE[eventType];
  const status = statuses.find((possible) => possible === run.status) ?? statuses[0];
  const { job_id: jobId, environment_id: environmentId, project_id: projectId } = run;
  return { eventType, data: { jobId, environmentId, projectId, runStatusCode: RUN_STATUS_CODES[status] } };
}

/** Returns the types of the events that the run's state implies; every run that has started was once `Running`. */
function expectedTypes({ status, has_started, artifacts_ingested_at }: RunProgress): EventType[] {
  return EVENT_TYPES.filter((type) => {
    const { statuses, afterArtifacts } = EVENT_TYPE_TABLE[type];
    const isReached =
      (has_started && statuses.includes('Running')) || statuses.some((reached) => reached === status);
    return isReached && (!afterArtifacts || artifacts_ingested_at !== null);
  });
}

/** @param undispatchedTypes types of the events that are not matched with subscriptions yet */
function stateOf(
  type: EventType,
  run: RunRow,
  undispatchedTypes: ReadonlySet<string>,
): RunEventView['state'] {
  if (!isReported(type, run)) return 'not_reported';
  if (undispatchedTypes.has(type) || undispatchedTypes.has('all')) return 'waiting';
  return run.has_log ? 'unmatched' : 'expired';
}

/** Whether the event was reported. A run that was recorded from published events has only the times of those events. */
function isReported(type: EventType, run: RunProgress): boolean {
  const { time } = EVENT_TYPE_TABLE[type];
  return time === null ? run.start_reported : run[RUN_TIMES[time].runField] !== null;
}

/** Returns the time of the event in microseconds, or the closest recorded one if the run does not have it. */
function occurredAt(type: EventType, run: RunRow): string {
  const { time, afterArtifacts } = EVENT_TYPE_TABLE[type];
  if (time === null) return run.created_at;
  const recordedAt = run[RUN_TIMES[time].runField] ?? run.finished_at ?? run.created_at;
  const ingestedAt = afterArtifacts ? run.artifacts_ingested_at : null;
  return ingestedAt !== null && BigInt(ingestedAt) > BigInt(recordedAt) ? ingestedAt : recordedAt;
}
