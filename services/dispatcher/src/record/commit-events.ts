import { eventJobId, type JobRunEvent } from '@runhook/contract';
import {
  EVENT_COLUMNS,
  type Pool,
  runStatement,
  type UnnestColumns,
  unnestParameterCount,
  unnestSql,
  unnestValues,
  upsertRunsSql,
  upsertRunsValues,
} from '@runhook/database';
import { type AttemptRecord, DELIVERED_COLUMNS } from './attempts.ts';
import { loadEventStates, matchesUndispatched } from './event-states.ts';

export interface NewDelivery {
  id: string;
  subscriptionId: string;
  webhookName: string;
  /** Whether the delivery has no slot or no permits. */
  isDeferred: boolean;
  /** Reason for which the delivery is cancelled at once and never attempted. */
  cancelReason?: string | undefined;
  /** First attempt that was already made and succeeded: the row is complete. */
  delivered?: AttemptRecord | undefined;
}

/** An event to commit with its deliveries, or with a page of them. */
export interface EventCommit {
  event: JobRunEvent;
  /** Version of the account that the deliveries were planned for; null commits them at any version. */
  version: string | null;
  deliveries: NewDelivery[];
  /** Time of the plan by `performance.now()`: `created_at` of the deliveries, even after a retry; now when omitted. */
  plannedAtMs?: number;
  /** Whether the event is on record; if not, it is inserted, or claimed if another process has inserted it. */
  isRecorded?: boolean;
  /** Whether more pages follow, so that the event stays undispatched. */
  isPartial?: boolean;
}

/**
 * - `claimed`: this call has committed the deliveries (or the page).
 * - `duplicate`: all deliveries of the event were committed before; this call has added nothing.
 * - `conflict`: the event on record has another type or other data; nothing was committed.
 * - `outdated`: the account has another version; nothing was committed.
 */
export type CommitResult = 'claimed' | 'duplicate' | 'conflict' | 'outdated';

export interface CommitOutcome {
  result: CommitResult;
  /** Ids of the call's deliveries that were not on record before; those that were belong to an earlier commit. */
  added: ReadonlySet<string>;
}

const DELIVERED_COLUMN_NAMES = Object.keys(DELIVERED_COLUMNS).join(', ');
const DELIVERY_COLUMNS: UnnestColumns<NewDelivery & { event: JobRunEvent; eventNumber: number }> = {
  event_n: ['bigint', ({ eventNumber }) => eventNumber],
  id: ['text', ({ id }) => id],
  subscription_id: ['text', ({ subscriptionId }) => subscriptionId],
  job_id: ['bigint', ({ event }) => event.data.jobId],
  run_id: ['bigint', ({ event }) => event.data.runId],
  webhook_name: ['text', ({ webhookName }) => webhookName],
  is_deferred: ['boolean', ({ isDeferred }) => isDeferred],
  cancel_reason: ['text', ({ cancelReason }) => cancelReason],
  ...DELIVERED_COLUMNS,
};

/**
 * Returns SQL for a part of a statement: inserts the deliveries of the events of `claimed`, except those of a page that
 * was committed before an interruption.
 * @param firstParameter number of the first parameter of {@link deliveryValues}
 */
const insertDeliveries = (firstParameter: number) => `
  INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name,
                          status, reason, completed_at, next_attempt_at, deferred_at, created_at, ${DELIVERED_COLUMN_NAMES})
  SELECT c.day, d.id, c.account_id, d.subscription_id, c.id, c.event_type, d.job_id, d.run_id, d.webhook_name,
         CASE WHEN d.attempt_count > 0 THEN 'delivered' WHEN d.cancel_reason IS NULL THEN 'pending' ELSE 'cancelled' END,
         d.cancel_reason,
         CASE WHEN d.attempt_count > 0 OR d.cancel_reason IS NOT NULL THEN now() END,
         CASE WHEN d.attempt_count = 0 AND NOT d.is_deferred AND d.cancel_reason IS NULL THEN now() END,
         CASE WHEN d.is_deferred AND d.cancel_reason IS NULL THEN now() END,
         c.created_at, ${DELIVERED_COLUMN_NAMES}
  FROM ${unnestSql(DELIVERY_COLUMNS, firstParameter, 'd')}
  JOIN claimed c ON c.n = d.event_n
  ON CONFLICT (day, id, account_id) DO NOTHING
  RETURNING id`;

function deliveryValues(commits: readonly EventCommit[]): unknown[][] {
  const deliveries = commits.flatMap(({ event, deliveries }, index) =>
    deliveries.map((delivery) => ({ event, eventNumber: index + 1, ...delivery })),
  );
  return unnestValues(DELIVERY_COLUMNS, deliveries);
}

const { timestamp, data, ...KEY_COLUMNS } = EVENT_COLUMNS;
const CLAIM_COLUMNS: UnnestColumns<EventCommit> = {
  ...KEY_COLUMNS,
  version: ['bigint', ({ version }) => version],
  age_ms: [
    'bigint',
    ({ plannedAtMs }) => (plannedAtMs === undefined ? 0 : Math.round(performance.now() - plannedAtMs)),
  ],
  is_partial: ['boolean', ({ isPartial = false }) => isPartial],
};
const INSERT_COLUMNS: UnnestColumns<EventCommit> = {
  ...CLAIM_COLUMNS,
  timestamp,
  data,
  run_id: ['bigint', ({ event }) => event.data.runId],
};

/** Returns SQL of parts of a statement: `outdated` events, whose account has another version, and `current` ones. */
const currentEvents = (columns: UnnestColumns<EventCommit>) => `
  input AS MATERIALIZED (
    SELECT *, now() - age_ms * interval '1 millisecond' AS created_at FROM ${unnestSql(columns, 1, 'i', 'n')}
  ), account AS MATERIALIZED (
    SELECT a.id, a.version FROM accounts a WHERE a.id IN (SELECT account_id FROM input WHERE version IS NOT NULL)
  ), outdated AS MATERIALIZED (
    SELECT i.n FROM input i LEFT JOIN account a ON a.id = i.account_id
    WHERE i.version IS NOT NULL AND i.version IS DISTINCT FROM a.version
  ), current AS MATERIALIZED (
    SELECT i.* FROM input i WHERE i.n NOT IN (SELECT n FROM outdated)
  )`;

const SELECT_RESULTS = `
  SELECT n::int, 'claimed' AS result, NULL AS id FROM claimed
  UNION ALL SELECT n::int, 'outdated', NULL FROM outdated
  UNION ALL SELECT 0, 'added', id FROM added`;

/** Commits the deliveries of events that are on record and undispatched. */
const COMMIT_UNDISPATCHED_EVENTS = `
  WITH ${currentEvents(CLAIM_COLUMNS)}, taken AS (
    DELETE FROM undispatched_events u USING current c
    WHERE ${matchesUndispatched('c.day', 'c.id', 'c.account_id')} AND NOT c.is_partial
    RETURNING c.n
  ), begun AS (
    SELECT c.n FROM current c
    JOIN undispatched_events u ON ${matchesUndispatched('c.day', 'c.id', 'c.account_id')} WHERE c.is_partial
  ), claimed AS MATERIALIZED (
    SELECT c.* FROM current c WHERE c.n IN (SELECT n FROM taken UNION ALL SELECT n FROM begun)
  ), added AS (
    ${insertDeliveries(1 + unnestParameterCount(CLAIM_COLUMNS))}
  )
  ${SELECT_RESULTS}`;

/** Commits events that are not on record with their deliveries, and with what they report of their runs. */
const COMMIT_NEW_EVENTS = `
  WITH ${currentEvents(INSERT_COLUMNS)}, stored AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, run_id)
    SELECT c.day, c.id, c.account_id, c.event_type, c."timestamp", c.data, c.run_id FROM current c
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING account_id, id
  ), claimed AS MATERIALIZED (
    SELECT c.* FROM current c JOIN stored s ON s.id = c.id AND s.account_id = c.account_id
  ), undispatched AS (
    INSERT INTO undispatched_events (day, event_id, account_id)
    SELECT day, id, account_id FROM claimed WHERE is_partial
  ), added AS (
    ${insertDeliveries(1 + unnestParameterCount(INSERT_COLUMNS))}
  ), recorded AS (
    ${upsertRunsSql(
      1 + unnestParameterCount(INSERT_COLUMNS) + unnestParameterCount(DELIVERY_COLUMNS),
      'SELECT account_id, run_id FROM claimed',
    )}
  )
  ${SELECT_RESULTS}`;

interface Row {
  [column: string]: unknown;
  n: number;
  result: 'claimed' | 'outdated' | 'added';
  id: string | null;
}

async function claim(pool: Pool, commits: readonly EventCommit[]): Promise<Row[]> {
  const values = [...unnestValues(CLAIM_COLUMNS, commits), ...deliveryValues(commits)];
  return await runStatement<Row>(pool, COMMIT_UNDISPATCHED_EVENTS, values, 'claim-events');
}

async function insert(pool: Pool, commits: readonly EventCommit[]): Promise<Row[]> {
  const values = [
    ...unnestValues(INSERT_COLUMNS, commits),
    ...deliveryValues(commits),
    ...upsertRunsValues(commits.map(({ event }) => event)),
  ];
  return await runStatement<Row>(pool, COMMIT_NEW_EVENTS, values, 'insert-events');
}

/**
 * Commits each event with its deliveries, if its account has the version that they were planned for. An event is claimed once: a
 * second commit with the same id adds nothing, whether the event was published twice, relayed twice, or its job was interrupted.
 * Returns one outcome per event, in input order. An event must not repeat within a call. If the call fails, some events may be
 * committed; they are `duplicate` when it is repeated.
 */
export async function commitEvents(pool: Pool, unsorted: readonly EventCommit[]): Promise<CommitOutcome[]> {
  // The same order in every process, so that two dispatchers with the same events cannot deadlock.
  const commits = [...unsorted].sort((a, b) => (eventJobId(a.event) < eventJobId(b.event) ? -1 : 1));
  const results = new Map<EventCommit, CommitResult>();
  const added = new Set<string>();
  const run = async (statement: typeof claim, chosen: readonly EventCommit[]) => {
    if (chosen.length === 0) return;
    for (const { n, result, id } of await statement(pool, chosen)) {
      if (result === 'added') added.add(id as string);
      else results.set(chosen[n - 1] as EventCommit, result);
    }
  };
  const isUnsettled = (commit: EventCommit) => !results.has(commit);
  await run(
    claim,
    commits.filter(({ isRecorded }) => isRecorded),
  );
  const inserted = commits.filter(({ isRecorded }) => !isRecorded);
  await run(insert, inserted);
  await run(claim, await findConcurrentlyRecorded(pool, inserted.filter(isUnsettled), results));
  return unsorted.map((commit) => ({ result: results.get(commit) ?? 'duplicate', added }));
}

/** Returns undispatched events that another process has put on record; adds the conflicts with others to `results`. */
async function findConcurrentlyRecorded(
  pool: Pool,
  commits: readonly EventCommit[],
  results: Map<EventCommit, CommitResult>,
): Promise<EventCommit[]> {
  if (commits.length === 0) return [];
  const states = await loadEventStates(
    pool,
    commits.map(({ event }) => ({ event, version: null })),
  );
  return commits.filter((commit, index) => {
    const status = states[index]?.status;
    if (status === 'conflict') results.set(commit, 'conflict');
    return status === 'undispatched';
  });
}

/** Commits like {@link commitEvents}, but an event may repeat within the call: the second one is `duplicate`. */
export async function commitEach(pool: Pool, commits: readonly EventCommit[]): Promise<CommitOutcome[]> {
  const firstCommits = new Map<string, EventCommit>();
  for (const commit of commits) {
    const key = eventJobId(commit.event);
    if (!firstCommits.has(key)) firstCommits.set(key, commit);
  }
  const distinct = [...firstCommits.values()];
  const outcomes = await commitEvents(pool, distinct);
  const outcomeByCommit = new Map(
    distinct.map((commit, index) => [commit, outcomes[index] as CommitOutcome]),
  );
  return commits.map((commit) => {
    const outcome = outcomeByCommit.get(
      firstCommits.get(eventJobId(commit.event)) as EventCommit,
    ) as CommitOutcome;
    const isRepeat = !outcomeByCommit.has(commit);
    return isRepeat && outcome.result === 'claimed' ? { result: 'duplicate', added: new Set() } : outcome;
  });
}
