// SQL by hand: this is the hot path, where one statement records the events of concurrent calls.
import { eventJobId, idDay, type JobRunEvent } from '@runhook/contract';
import {
  column,
  distinctDays,
  EVENT_COLUMNS,
  EVENT_IDENTITY_COLUMNS,
  hasOtherData,
  inDays,
  inTransaction,
  isItemFault,
  type Queryable,
  queryRows,
  type UnnestColumns,
  unnestParameterCount,
  unnestSql,
  unnestValues,
  upsertRunsSql,
  upsertRunsValues,
} from '@runhook/database';
import { callHalving, MicroBatcher } from '@runhook/runtime';
import type { EndpointResponse } from '../http/envelope.ts';
import { StaleCredentialError } from '../http/errors.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import type { CommittedEvent } from './relay.ts';
import { COMMIT_SPACING, type Reporting, type RunsDependencies } from './runs.ts';

/** Records the events that runners publish over REST instead of the queue. */
export interface PublishedEvents {
  /**
   * Commits the events that are not on record yet, with the state of their runs, and hands them to the relay.
   * @param events of one account, each id once
   * @param createResponse makes the response from the results of the events
   */
  publish(
    reporting: Reporting,
    events: readonly JobRunEvent[],
    createResponse: (publication: PublishOutcome) => EndpointResponse,
  ): Promise<RecordedResponse>;
}

/** Ids of events. An id in neither set was on record before, with the same data. */
export interface PublishOutcome {
  added: ReadonlySet<string>;
  /** Events that are on record with another type or other data; the record is not changed. */
  conflicting: ReadonlySet<string>;
}

/** Maximum number of events of one statement. */
const BATCH_EVENTS_MAX = 1_000;

/** Records a call with an `Idempotency-Key` in a separate transaction with its response, as for reports. */
export function createPublishedEvents(
  dependencies: Omit<RunsDependencies, 'nowMs' | 'stepsBytesMax'>,
): PublishedEvents {
  const { pool, reportPool, relay, onAccepted, traceContext = () => null } = dependencies;
  const batcher = new MicroBatcher<Publication, PublicationResult>({
    async run(publications) {
      const results = await record(reportPool, publications, 'published-events');
      relayCommitted(publications, results);
      return results;
    },
    sizeMax: BATCH_EVENTS_MAX,
    sizeOf: ({ events }) => events.length,
    slots: 1,
    ...COMMIT_SPACING,
    isItemFault,
  });

  function requireOutcome(result: PublicationResult): PublishOutcome {
    if (result.kind === 'rejected') throw result.error;
    if (result.kind === 'outdated') throw new StaleCredentialError();
    return result;
  }

  /** Hands events that were committed together to the relay together. */
  function relayCommitted(publications: readonly Publication[], results: readonly PublicationResult[]): void {
    const committed = publications.flatMap((publication, index) =>
      newEventsOf(publication, results[index] as PublicationResult),
    );
    if (committed.length === 0) return;
    onAccepted?.(committed.length);
    relay.add(committed);
  }

  return {
    async publish({ version, recorder }, events, createResponse) {
      const { batch } = recorder;
      const publication = { version, events, traceContext: traceContext() };
      if (batch) {
        const { beforeCommit } = batch;
        return batch.accept(
          createResponse(requireOutcome(await batcher.add({ ...publication, beforeCommit }))),
        );
      }
      const unbatched = { ...publication, beforeCommit: () => {} };
      const { results, response } = await inTransaction(pool, async (transaction) => {
        const results = await record(transaction, [unbatched]);
        const unrecordedResponse = createResponse(requireOutcome(results[0] as PublicationResult));
        return { results, response: await recorder.record(transaction, unrecordedResponse) };
      });
      relayCommitted([unbatched], results);
      return response;
    },
  };
}

/** The events of one call. */
interface Publication {
  /** Value of `cache_version` at which the caller was read; null for a console session, which is never cached. */
  version: string | null;
  events: readonly JobRunEvent[];
  traceContext: string | null;
  /** An error that it throws becomes the result of the call. */
  beforeCommit(): void;
}

type PublicationResult =
  | ({ kind: 'recorded' } & PublishOutcome)
  | { kind: 'outdated' }
  | { kind: 'rejected'; error: unknown };

function newEventsOf({ events, traceContext }: Publication, result: PublicationResult): CommittedEvent[] {
  if (result.kind !== 'recorded') return [];
  return events.filter(({ eventId }) => result.added.has(eventId)).map((event) => ({ event, traceContext }));
}

interface PendingPublication {
  publication: Publication;
  index: number;
}

/** Returns one result per call, in input order. A call that repeats an earlier one's event id waits for its result. */
async function record(
  database: Queryable,
  publications: readonly Publication[],
  statement?: string,
): Promise<PublicationResult[]> {
  const results: PublicationResult[] = new Array(publications.length);
  let waiting: PendingPublication[] = publications.map((publication, index) => ({ publication, index }));
  while (waiting.length > 0) {
    const seen = new Set<string>();
    const round: PendingPublication[] = [];
    const nextRound: PendingPublication[] = [];
    for (const pending of waiting) {
      const { events } = pending.publication;
      if (events.some((event) => seen.has(eventJobId(event)))) nextRound.push(pending);
      else if (confirmCommit(pending, results)) round.push(pending);
      for (const event of events) seen.add(eventJobId(event));
    }
    const isFirst = waiting.length === publications.length;
    if (isFirst) await writeRound(database, round, results, statement);
    else await writeLaterRound(database, round, results, statement);
    waiting = nextRound;
  }
  return results;
}

/** Writes a round after the first one, whose calls are committed: an error must not become their result. */
async function writeLaterRound(
  database: Queryable,
  round: readonly PendingPublication[],
  results: PublicationResult[],
  statement: string | undefined,
): Promise<void> {
  const write = (part: readonly PendingPublication[]) => writeRound(database, part, results, statement);
  try {
    for (const { item, error } of await callHalving(round, write, isItemFault))
      results[item.index] = { kind: 'rejected', error };
  } catch (error) {
    for (const { index } of round) results[index] ??= { kind: 'rejected', error };
  }
}

function confirmCommit({ publication, index }: PendingPublication, results: PublicationResult[]): boolean {
  try {
    publication.beforeCommit();
    return true;
  } catch (error) {
    results[index] = { kind: 'rejected', error };
    return false;
  }
}

/** An event to insert, with the values that PUBLISH needs in addition. */
interface EventToInsert {
  version: string | null;
  traceContext: string | null;
  event: JobRunEvent;
}

const PUBLISH_COLUMNS: UnnestColumns<EventToInsert> = {
  ...EVENT_COLUMNS,
  version: ['bigint', ({ version }) => version],
  trace_context: ['text', ({ traceContext }) => traceContext],
  run_id: ['bigint', ({ event }) => event.data.runId],
};

// Omits events whose caller may be outdated. Events are inserted in the order of their ids and runs in the order of
// theirs, as dispatchers do, to prevent deadlocks.
const PUBLISH = `
  WITH current AS MATERIALIZED (
    SELECT version FROM cache_version
  ), stored AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, run_id, trace_context)
    SELECT e.day, e.id, e.account_id, e.event_type, e."timestamp", e.data, e.run_id, e.trace_context
    FROM ${unnestSql(PUBLISH_COLUMNS, 1, 'e')}
    JOIN current ON e.version IS NULL OR e.version = current.version
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING day, id, account_id
  ), opened AS (
    INSERT INTO undispatched_events (day, event_id, account_id) SELECT day, id, account_id FROM stored
  ), recorded AS (
    ${upsertRunsSql(
      1 + unnestParameterCount(PUBLISH_COLUMNS),
      `SELECT e.account_id, e.run_id FROM ${unnestSql(PUBLISH_COLUMNS, 1, 'e')}
       JOIN stored ON stored.id = e.id AND stored.account_id = e.account_id`,
    )}
  )
  SELECT current.version, stored.id, stored.account_id FROM current LEFT JOIN stored ON true`;

const RESULT_COLUMNS = {
  version: column.digits,
  id: column.orNull(column.text),
  account_id: column.orNull(column.digits),
};

// Selects the events of the calls whose id is on record with another type or other data. Runs after PUBLISH as a
// separate statement, whose snapshot has the events that another transaction has just committed.
const SELECT_EVENTS_WITH_OTHER_DATA = `
  SELECT i.id, i.account_id FROM ${unnestSql(EVENT_IDENTITY_COLUMNS, 1, 'i')}
  JOIN events e ON e.day = i.day AND e.id = i.id AND e.account_id = i.account_id
  WHERE ${inDays(`$${1 + unnestParameterCount(EVENT_IDENTITY_COLUMNS)}`, 'i', 'e')} AND ${hasOtherData('e', 'i')}`;

/** Returns the keys ({@link eventJobId}) of the events that are on record with other data. */
async function findConflicts(database: Queryable, rows: readonly EventToInsert[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const days = distinctDays(rows.map(({ event }) => idDay('event', event.eventId)));
  const columns = { id: column.text, account_id: column.digits };
  const found = await queryRows(database, columns, SELECT_EVENTS_WITH_OTHER_DATA, [
    ...unnestValues(EVENT_IDENTITY_COLUMNS, rows),
    days,
  ]);
  return new Set(
    found.map(({ id, account_id }) => eventJobId({ eventId: id, accountId: Number(account_id) })),
  );
}

async function writeRound(
  database: Queryable,
  round: readonly PendingPublication[],
  results: PublicationResult[],
  statement: string | undefined,
): Promise<void> {
  if (round.length === 0) return;
  const rows = round
    .flatMap(({ publication: { version, traceContext, events } }) =>
      events.map((event) => ({ version, traceContext, event })),
    )
    .sort((a, b) => (eventJobId(a.event) < eventJobId(b.event) ? -1 : 1));
  const found = await queryRows(
    database,
    RESULT_COLUMNS,
    PUBLISH,
    [...unnestValues(PUBLISH_COLUMNS, rows), ...upsertRunsValues(rows.map(({ event }) => event))],
    statement,
  );
  const currentVersion = found[0]?.version;
  const stored = new Set<string>();
  for (const { id, account_id: accountId } of found)
    if (id !== null) stored.add(eventJobId({ eventId: id, accountId: Number(accountId) }));
  const isCurrent = ({ version }: { version: string | null }) =>
    version === null || version === currentVersion;
  const existingRows = rows.filter((row) => isCurrent(row) && !stored.has(eventJobId(row.event)));
  const existing = new Set(existingRows.map(({ event }) => eventJobId(event)));
  const { conflicts, error } = await findConflicts(database, existingRows).then(
    (conflicts) => ({ conflicts, error: undefined }),
    (error: unknown) => ({ conflicts: new Set<string>(), error }),
  );
  for (const { publication, index } of round) {
    // The other calls are committed, so the error must not become their result.
    if (error !== undefined && publication.events.some((event) => existing.has(eventJobId(event)))) {
      results[index] = { kind: 'rejected', error };
      continue;
    }
    const idsIn = (keys: ReadonlySet<string>) =>
      new Set(
        publication.events.filter((event) => keys.has(eventJobId(event))).map(({ eventId }) => eventId),
      );
    results[index] = isCurrent(publication)
      ? { kind: 'recorded', added: idsIn(stored), conflicting: idsIn(conflicts) }
      : { kind: 'outdated' };
  }
}
