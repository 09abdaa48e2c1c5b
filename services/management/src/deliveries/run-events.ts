// SQL by hand: a run’s deliveries by the index of runs, and among the events that nobody has fanned out, which are few.
import { type EventType, integerIdFromText } from '@runhook/contract';
import { column, type Pool, queryRows } from '@runhook/database';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { NotFoundError } from '../http/errors.ts';
import { QueryReader } from '../http/query-parameters.ts';
import { microsOf } from './delivery.ts';

export const RUN_EVENT_STATES = ['told', 'waiting', 'unmatched', 'forgotten'] as const;

/** An event of a run, whether anybody heard of it or not; times are microseconds since the epoch, as digits. */
export interface RunEventView {
  event_type: EventType;
  /** Null when no webhook has a delivery of it: the log of deliveries does not lead to it then. */
  event_id: string | null;
  /** When it was fanned out, or as far as the run tells when it happened. */
  happened_at: string;
  state: (typeof RUN_EVENT_STATES)[number];
  delivery_count: number;
}

const RUN = {
  started_at: column.digits,
  errored_at: column.orNull(column.digits),
  completed_at: column.orNull(column.digits),
  has_log: column.flag,
};

// The day of the oldest partition is what retention has left.
const SELECT_RUN = `
  SELECT ${microsOf('created_at')} AS started_at, ${microsOf('errored_at')} AS errored_at,
    ${microsOf(`CASE WHEN status IN ('Success', 'Errored') AND artifacts_ingested_at IS NOT NULL
      THEN greatest(artifacts_ingested_at, finished_at) END`)} AS completed_at,
    created_at >= coalesce((
      SELECT min(to_date(right(child.relname, 8), 'YYYYMMDD'))
      FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
      WHERE i.inhparent = 'deliveries'::regclass AND child.relname <> 'deliveries_default')::timestamp, '-infinity') AS has_log
  FROM runs WHERE account_id = $1 AND id = $2`;

const TOLD = {
  event_id: column.text,
  event_type: column.oneOf(['job.run.started', 'job.run.completed', 'job.run.errored'] as const),
  happened_at: column.digits,
  delivery_count: column.integer,
};

const SELECT_TOLD = `
  SELECT event_id, event_type, ${microsOf('min(created_at)')} AS happened_at, count(*)::int AS delivery_count
  FROM deliveries WHERE account_id = $1 AND run_id = $2 GROUP BY event_id, event_type`;

/** Undispatched events that are read; of an account with more, an event that is not among them counts as undispatched. */
const OPEN_MAX = 10_000;
const OPEN = { event_type: column.text };
const SELECT_OPEN = `
  SELECT e.event_type FROM (SELECT day, event_id FROM undispatched_events WHERE account_id = $1 LIMIT ${OPEN_MAX}) u
  JOIN events e ON e.day = u.day AND e.id = u.event_id AND e.account_id = $1
  WHERE e.run_id = $2
  UNION ALL
  SELECT 'all' WHERE
    (SELECT count(*) FROM (SELECT 1 FROM undispatched_events WHERE account_id = $1 LIMIT ${OPEN_MAX}) u) = ${OPEN_MAX}`;

/** What a run's events are, in order, and whether they reached anybody (docs/contract.md#deliveries). */
export function runEventsEndpoint({ pool }: { pool: Pool }): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/run/:run_id/events',
    access: READ_WEBHOOKS,
    async handle({ account, param, query }) {
      new QueryReader(query).check();
      const runId = integerIdFromText(param('run_id'));
      if (runId === null) throw new NotFoundError();
      const key = [account.id, runId];
      // The open ones first: one that is fanned out meanwhile is found among the deliveries.
      const open = new Set(
        (await queryRows(pool, OPEN, SELECT_OPEN, key)).map(({ event_type }) => event_type),
      );
      const [[run], told] = await Promise.all([
        queryRows(pool, RUN, SELECT_RUN, key),
        queryRows(pool, TOLD, SELECT_TOLD, key),
      ]);
      if (!run && told.length === 0) throw new NotFoundError();
      const expected: [EventType, string | null][] = [
        ['job.run.started', run?.started_at ?? null],
        ['job.run.errored', run?.errored_at ?? null],
        ['job.run.completed', run?.completed_at ?? null],
      ];
      const events = told.map((event): RunEventView => ({ ...event, state: 'told' }));
      for (const [event_type, happened_at] of expected) {
        if (happened_at === null || told.some((event) => event.event_type === event_type)) continue;
        const isOpen = open.has(event_type) || open.has('all');
        const state = isOpen ? 'waiting' : run?.has_log ? 'unmatched' : 'forgotten';
        events.push({ event_type, event_id: null, happened_at, state, delivery_count: 0 });
      }
      const order = expected.map(([event_type]) => event_type);
      const rank = ({ event_type }: RunEventView) => order.indexOf(event_type);
      events.sort(
        (one, other) =>
          rank(one) - rank(other) || Number(BigInt(one.happened_at) - BigInt(other.happened_at)),
      );
      return { code: 200, data: events };
    },
  };
}
