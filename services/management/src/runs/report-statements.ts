// SQL by hand: this is the hot path, where one statement records the reports of many runners.
import type { JobRunEvent } from '@runhook/contract';
import {
  column,
  EVENT_COLUMNS,
  isUniqueViolation,
  type Queryable,
  queryRows,
  type UnnestColumns,
  unnestParameterCount,
  unnestSql,
  unnestValues,
} from '@runhook/database';
import { keyOf, versionOf } from './report-reads.ts';
import type { RunView } from './run-view.ts';
import { timeSql } from './statements.ts';
import { isUnstarted, type RunState } from './transitions.ts';

/** The new state of a run after a report, with the events that follow from it. */
export interface RunWrite {
  /** State after the write. */
  run: RunView;
  /** State that the run must have before the write; null if it must not exist. */
  expected: RunState | null;
  /** Value of `cache_version` that must be current. */
  version: string;
  events: readonly JobRunEvent[];
  traceContext: string | null;
}

/** Columns of started runs. */
const STARTED_COLUMNS = {
  version: ['bigint', ({ version }) => version],
  account_id: ['bigint', ({ run }) => run.account_id],
  id: ['bigint', ({ run }) => run.id],
  job_id: ['bigint', ({ run }) => run.job_id],
  job_name: ['text', ({ run }) => run.job_name],
  project_id: ['bigint', ({ run }) => run.project_id],
  project_name: ['text', ({ run }) => run.project_name],
  environment_id: ['bigint', ({ run }) => run.environment_id],
  environment_name: ['text', ({ run }) => run.environment_name],
  engine_version: ['text', ({ run }) => run.engine_version],
  reason: ['text', ({ run }) => run.reason],
  started_at: ['timestamptz', ({ run }) => run.started_at],
} as const satisfies UnnestColumns<RunWrite>;

const startSql = (firstParameter: number, conflictClause: string) => `
  INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name,
                    engine_version, reason, started_at, status)
  SELECT s.account_id, s.id, s.job_id, s.job_name, s.project_id, s.project_name, s.environment_id,
         s.environment_name, s.engine_version, s.reason, s.started_at, 'Running'
  FROM ${unnestSql(STARTED_COLUMNS, firstParameter, 's')}
  JOIN current ON current.version = s.version
  WHERE (SELECT true FROM runs r WHERE r.account_id = s.account_id AND r.id = s.id) IS NULL
  ${conflictClause}
  RETURNING account_id, id, created_at`;

/** Columns of changed runs. */
const CHANGED_COLUMNS: UnnestColumns<RunWrite> = {
  version: STARTED_COLUMNS.version,
  account_id: STARTED_COLUMNS.account_id,
  id: STARTED_COLUMNS.id,
  expected_status: ['text', ({ expected }) => expected?.status],
  expects_finish: ['boolean', ({ expected }) => expected?.hasFinishTime],
  expects_artifacts: ['boolean', ({ expected }) => expected?.hasArtifacts],
  status: ['text', ({ run }) => run.status],
  status_message: ['text', ({ run }) => run.status_message],
  finished_at: ['timestamptz', ({ run }) => run.finished_at],
  errored_at: ['timestamptz', ({ run }) => run.errored_at],
  artifacts_ingested_at: ['timestamptz', ({ run }) => run.artifacts_ingested_at],
};

/** Columns of changed runs that may start, as triggered runs do. */
const STARTABLE_COLUMNS: UnnestColumns<RunWrite> = {
  ...CHANGED_COLUMNS,
  engine_version: ['text', ({ run }) => run.engine_version],
  started_at: ['timestamptz', ({ run }) => run.started_at],
};

/** `SKIP LOCKED` leaves out runs that another transaction has locked, as batches do. */
type LockClause = '' | 'SKIP LOCKED';

/** Batches have no columns that nearly no change needs. */
const changedColumns = (lockClause: LockClause) => (lockClause === '' ? STARTABLE_COLUMNS : CHANGED_COLUMNS);

/** Returns whether a write starts a triggered run, for which only the unbatched statement has the columns. */
export function startsTriggered({ expected, run }: RunWrite): boolean {
  return expected !== null && isUnstarted(expected.status) && run.status === 'Running';
}

const START_SQL = `,
      engine_version = c.engine_version, started_at = c.started_at,
      start_reported = r.start_reported OR (r.started_at IS NULL AND c.started_at IS NOT NULL)`;

const changeSql = (firstParameter: number, lockClause: LockClause) => `
  UPDATE runs r
  SET status = c.status, status_message = c.status_message, finished_at = c.finished_at, errored_at = c.errored_at,
      artifacts_ingested_at = c.artifacts_ingested_at${lockClause === '' ? START_SQL : ''}
  FROM (
    SELECT input.*
    FROM ${unnestSql(changedColumns(lockClause), firstParameter, 'input')}
    JOIN current ON current.version = input.version
    JOIN runs locked ON locked.account_id = input.account_id AND locked.id = input.id
    FOR UPDATE OF locked ${lockClause}
  ) AS c
  WHERE r.account_id = c.account_id AND r.id = c.id AND r.status = c.expected_status
    AND (r.finished_at IS NOT NULL) = c.expects_finish
    AND (r.artifacts_ingested_at IS NOT NULL) = c.expects_artifacts
  RETURNING r.account_id, r.id`;

/** Columns of the events of started and of changed runs. */
const REPORT_EVENT_COLUMNS: UnnestColumns<{
  event: JobRunEvent;
  runId: number;
  traceContext: string | null;
}> = {
  ...EVENT_COLUMNS,
  run_id: ['bigint', ({ runId }) => runId],
  trace_context: ['text', ({ traceContext }) => traceContext],
};

/** Kinds of reports in a batch; one kind has a shorter statement, since parts of a statement without rows cost time. */
type ReportKinds = 'starts' | 'changes' | 'both';

/**
 * Returns the statement. A run that does not match its expected state is not changed and has no events. Both parts lock
 * their runs in input order, as all other writers of runs do, so that they cannot deadlock.
 * @param conflictClause conflict clause for a start whose run another transaction creates
 */
function recordSql(
  kinds: ReportKinds,
  lockClause: LockClause,
  conflictClause: '' | typeof DO_NOTHING_ON_CONFLICT,
): string {
  const parts: string[] = [];
  const doneSelects: string[] = [];
  let firstParameter = 1;
  if (kinds !== 'changes') {
    parts.push(`started AS (${startSql(firstParameter, conflictClause)})`);
    doneSelects.push('SELECT account_id, id, created_at FROM started');
    firstParameter += unnestParameterCount(STARTED_COLUMNS);
  }
  if (kinds !== 'starts') {
    parts.push(`changed AS (${changeSql(firstParameter, lockClause)})`);
    doneSelects.push('SELECT account_id, id, NULL::timestamptz AS created_at FROM changed');
    firstParameter += unnestParameterCount(changedColumns(lockClause));
  }
  return `
    WITH current AS MATERIALIZED (
      SELECT version FROM cache_version
    ), ${parts.join(', ')}, done AS (
      ${doneSelects.join(' UNION ALL ')}
    ), sent AS (
      INSERT INTO events (day, id, account_id, event_type, "timestamp", data, run_id, trace_context)
      SELECT e.day, e.id, e.account_id, e.event_type, e."timestamp", e.data, e.run_id, e.trace_context
      FROM ${unnestSql(REPORT_EVENT_COLUMNS, firstParameter, 'e')}
      JOIN done ON done.account_id = e.account_id AND done.id = e.run_id
      RETURNING day, id, account_id
    ), opened AS (
      INSERT INTO undispatched_events (day, event_id, account_id) SELECT day, id, account_id FROM sent
    )
    SELECT current.version, done.account_id, done.id, ${timeSql('created_at')} FROM current LEFT JOIN done ON true`;
}

const DO_NOTHING_ON_CONFLICT = 'ON CONFLICT (account_id, id) DO NOTHING';
/**
 * `ON CONFLICT` makes PostgreSQL write a second WAL record per row to confirm the insertion. Nearly all batches use a
 * statement without it; if another transaction creates the same run, it fails and is retried with the clause.
 */
const batchedStatement = (kinds: ReportKinds) => ({
  text: recordSql(kinds, 'SKIP LOCKED', ''),
  name: `record-${kinds}`,
});
const BATCHED_STATEMENTS = {
  starts: batchedStatement('starts'),
  changes: batchedStatement('changes'),
  both: batchedStatement('both'),
};
const RETRY_STATEMENT = {
  text: recordSql('both', 'SKIP LOCKED', DO_NOTHING_ON_CONFLICT),
  name: 'record-retry',
};
/** The statement for reports within a transaction, which a failure on a conflict would abort. */
const TRANSACTION_STATEMENT = { text: recordSql('both', '', DO_NOTHING_ON_CONFLICT), name: undefined };

const RECORDED_ROW = {
  version: column.digits,
  account_id: column.orNull(column.digits),
  id: column.orNull(column.digits),
  /** Null for a changed run. */
  created_at: column.orNull(column.text),
};

/**
 * Returns the keys of the runs that were written with their events ({@link keyOf}), each with the time on record of a
 * started run, else null. Runs must not repeat within a call.
 * @param isBatched does not wait for a run that another transaction has locked
 */
export async function recordRuns(
  database: Queryable,
  unsorted: readonly RunWrite[],
  isBatched: boolean,
): Promise<{ version: string; written: Map<string, string | null> }> {
  const writes = unsorted
    .map((write) => ({ key: keyOf({ accountId: write.run.account_id, id: write.run.id }), ...write }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  const starts = writes.filter(({ expected }) => expected === null);
  const changes = writes.filter(({ expected }) => expected !== null);
  const events = writes.flatMap(({ run, events, traceContext }) =>
    events.map((event) => ({ event, runId: run.id, traceContext })),
  );
  const execute = (kinds: ReportKinds, { text, name }: { text: string; name: string | undefined }) => {
    const values = [
      ...(kinds === 'changes' ? [] : unnestValues(STARTED_COLUMNS, starts)),
      ...(kinds === 'starts' ? [] : unnestValues(changedColumns(isBatched ? 'SKIP LOCKED' : ''), changes)),
      ...unnestValues(REPORT_EVENT_COLUMNS, events),
    ];
    return queryRows(database, RECORDED_ROW, text, values, name);
  };
  const kinds = starts.length === 0 ? 'changes' : changes.length === 0 ? 'starts' : 'both';
  const rows = isBatched
    ? await execute(kinds, BATCHED_STATEMENTS[kinds]).catch((error: unknown) => {
        if (!isUniqueViolation(error, 'runs')) throw error;
        return execute('both', RETRY_STATEMENT);
      })
    : await execute('both', TRANSACTION_STATEMENT);
  const written = new Map<string, string | null>();
  for (const { account_id: accountId, id, created_at: createdAt } of rows)
    if (accountId !== null && id !== null) written.set(`${accountId}/${id}`, createdAt);
  return { version: versionOf(rows), written };
}
