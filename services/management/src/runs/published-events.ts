// SQL by hand: the hot path; what many callers publish at about the same time is one statement.
import { eventJobId, type JobRunEvent } from '@runhook/contract';
import {
  column,
  GIVEN_EVENT,
  type Given,
  givenRows,
  givenSize,
  givenValues,
  inTransaction,
  isDatabaseUnavailable,
  type Queryable,
  queryRows,
  recordRunsOfEvents,
  valuesOfRuns,
} from '@runhook/database';
import { MicroBatcher } from '@runhook/runtime';
import type { Answer } from '../http/envelope.ts';
import { OutdatedCallerError } from '../http/errors.ts';
import type { KeptAnswer } from '../http/idempotency.ts';
import type { CommittedEvent } from './relay.ts';
import { COMMIT_SPACING, type Reporting, type RunsDependencies } from './runs.ts';

/** Events that runners publish over REST in place of onto the queue, as complete as they are there. */
export interface PublishedEvents {
  /**
   * Commits those that are not on record yet, with what they tell of their runs, and hands them to the relay.
   * @param events of one account, each id once
   * @param settle makes the answer of the ids that are new
   */
  publish(
    reporting: Reporting,
    events: readonly JobRunEvent[],
    settle: (added: ReadonlySet<string>) => Answer,
  ): Promise<KeptAnswer>;
}

/** Events of one statement. */
const BATCH_EVENTS_MAX = 1_000;

/** What has an `Idempotency-Key` has a transaction of its own, with its answer, as a report has. */
export function createPublishedEvents(dependencies: Omit<RunsDependencies, 'nowMs'>): PublishedEvents {
  const { pool, reportPool, relay, onAccepted, traceContext = () => null } = dependencies;
  const together = new MicroBatcher<Publication, Recorded>({
    async run(publications) {
      const recorded = await record(reportPool, publications, 'published-events');
      pass(publications, recorded);
      return recorded;
    },
    sizeMax: BATCH_EVENTS_MAX,
    sizeOf: ({ events }) => events.length,
    slots: 1,
    ...COMMIT_SPACING,
    mayBeItemFault: (error) => !isDatabaseUnavailable(error),
  });

  function addedOf(recorded: Recorded): Added {
    if (recorded.kind === 'refused') throw recorded.error;
    if (recorded.kind === 'outdated') throw new OutdatedCallerError();
    return recorded.added;
  }

  /** What was committed together is handed to the queue together. */
  function pass(publications: readonly Publication[], recorded: readonly Recorded[]): void {
    const committed = publications.flatMap((publication, index) =>
      newEventsOf(publication, recorded[index] as Recorded),
    );
    if (committed.length === 0) return;
    onAccepted?.(committed.length);
    relay.add(committed);
  }

  return {
    async publish({ version, keep }, events, settle) {
      const { withoutKey } = keep;
      const publication = { version, events, traceContext: traceContext() };
      if (withoutKey) {
        const { beforeCommit } = withoutKey;
        const added = addedOf(await together.add({ ...publication, beforeCommit }));
        return withoutKey.answer(settle(new Set(added.keys())));
      }
      const alone = { ...publication, beforeCommit: () => {} };
      const { recorded, answer } = await inTransaction(pool, async (transaction) => {
        const recorded = await record(transaction, [alone]);
        const added = addedOf(recorded[0] as Recorded);
        return { recorded, answer: await keep.within(transaction, settle(new Set(added.keys()))) };
      });
      pass([alone], recorded);
      return answer;
    },
  };
}

/** The events of one call. */
interface Publication {
  /** Of what is remembered, as of which the caller was let in; null for a caller who was asked for by itself. */
  version: string | null;
  events: readonly JobRunEvent[];
  traceContext: string | null;
  /** What it throws is the call's result. */
  beforeCommit(): void;
}

/** The ids that are new, each with the version of its account at that moment. */
type Added = ReadonlyMap<string, string>;

type Recorded =
  | { kind: 'recorded'; added: Added }
  | { kind: 'outdated' }
  | { kind: 'refused'; error: unknown };

function newEventsOf({ events, traceContext }: Publication, recorded: Recorded): CommittedEvent[] {
  if (recorded.kind !== 'recorded') return [];
  return events.flatMap((event) => {
    const accountVersion = recorded.added.get(event.eventId);
    return accountVersion === undefined ? [] : [{ event: { ...event, accountVersion }, traceContext }];
  });
}

interface Open {
  publication: Publication;
  index: number;
}

/** In order, one for each. A call that has an id of another's waits for what becomes of that. */
async function record(
  database: Queryable,
  publications: readonly Publication[],
  statement?: string,
): Promise<Recorded[]> {
  const results: Recorded[] = new Array(publications.length);
  let waiting: Open[] = publications.map((publication, index) => ({ publication, index }));
  while (waiting.length > 0) {
    const seen = new Set<string>();
    const round: Open[] = [];
    const later: Open[] = [];
    for (const open of waiting) {
      const { events } = open.publication;
      if (events.some((event) => seen.has(eventJobId(event)))) later.push(open);
      else if (passes(open, results)) round.push(open);
      for (const event of events) seen.add(eventJobId(event));
    }
    if (round.length > 0) await writeRound(database, round, results, statement);
    waiting = later;
  }
  return results;
}

function passes({ publication, index }: Open, results: Recorded[]): boolean {
  try {
    publication.beforeCommit();
    return true;
  } catch (error) {
    results[index] = { kind: 'refused', error };
    return false;
  }
}

interface Published {
  version: string | null;
  traceContext: string | null;
  event: JobRunEvent;
}

const GIVEN: Given<Published> = {
  ...GIVEN_EVENT,
  version: ['bigint', ({ version }) => version],
  trace_context: ['text', ({ traceContext }) => traceContext],
  run_id: ['bigint', ({ event }) => event.data.runId],
};

// Whose caller may be another by now is left out. Events go in by the order of their ids, and runs by that of theirs, as
// dispatchers write them.
const PUBLISH = `
  WITH current AS MATERIALIZED (
    SELECT version FROM remembered_version
  ), stored AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data, trace_context)
    SELECT e.day, e.id, e.account_id, e.event_type, e."timestamp", e.data, e.trace_context
    FROM ${givenRows(GIVEN, 1, 'e')}
    JOIN current ON e.version IS NULL OR e.version = current.version
    ON CONFLICT (day, id, account_id) DO NOTHING
    RETURNING day, id, account_id
  ), opened AS (
    INSERT INTO open_events (day, event_id, account_id) SELECT day, id, account_id FROM stored
  ), recorded AS (
    ${recordRunsOfEvents(
      1 + givenSize(GIVEN),
      `SELECT e.account_id, e.run_id FROM ${givenRows(GIVEN, 1, 'e')}
       JOIN stored ON stored.id = e.id AND stored.account_id = e.account_id`,
    )}
  )
  SELECT current.version, stored.id, stored.account_id, a.version AS account_version
  FROM current LEFT JOIN stored ON true LEFT JOIN accounts a ON a.id = stored.account_id`;

const ROW = {
  version: column.digits,
  id: column.orNull(column.text),
  account_id: column.orNull(column.digits),
  account_version: column.orNull(column.digits),
};

async function writeRound(
  database: Queryable,
  round: readonly Open[],
  results: Recorded[],
  statement: string | undefined,
): Promise<void> {
  const rows = round
    .flatMap(({ publication: { version, traceContext, events } }) =>
      events.map((event) => ({ version, traceContext, event })),
    )
    .sort((a, b) => (eventJobId(a.event) < eventJobId(b.event) ? -1 : 1));
  const found = await queryRows(
    database,
    ROW,
    PUBLISH,
    [...givenValues(GIVEN, rows), ...valuesOfRuns(rows.map(({ event }) => event))],
    statement,
  );
  const now = found[0]?.version;
  const stored = new Map<string, string>();
  for (const { id, account_id: accountId, account_version: accountVersion } of found)
    if (id !== null)
      stored.set(eventJobId({ eventId: id, accountId: Number(accountId) }), accountVersion ?? '');
  for (const { publication, index } of round) {
    const isCurrent = publication.version === null || publication.version === now;
    const added = new Map<string, string>();
    for (const event of publication.events) {
      const accountVersion = stored.get(eventJobId(event));
      if (accountVersion !== undefined) added.set(event.eventId, accountVersion);
    }
    results[index] = isCurrent ? { kind: 'recorded', added } : { kind: 'outdated' };
  }
}
