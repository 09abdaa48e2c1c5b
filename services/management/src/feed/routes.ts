import {
  type EventFilters,
  eventMatches,
  filterSets,
  type JobRunEvent,
  renderPayload,
} from '@runhook/contract';
import type { Queryable } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import type { EndpointResponse } from '../http/envelope.ts';
import { ConflictError, GoneError } from '../http/errors.ts';
import { LongPoll } from '../http/long-poll.ts';
import { createReader, integer, LIMIT_DEFAULT, LIMIT_MAX, QueryReader } from '../http/query-parameters.ts';
import {
  SUBSCRIPTION_PATH,
  subscriptionKey,
  subscriptionNotFound,
} from '../subscriptions/require-subscription.ts';
import {
  FEED_START,
  type FeedCursor,
  type FeedPosition,
  formatCursor,
  parseCursor,
  resolveCursor,
} from './cursor.ts';
import { type FeedPage, readFeedPage } from './page.ts';
import type { FeedState, FeedStateReader } from './state.ts';
import type { FeedWaits } from './waits.ts';

/** Maximum time that a reader may wait for events, in seconds. */
export const FEED_WAIT_SECONDS_MAX = 20;
/** Value of `after` for the end of the feed. */
export const LATEST = 'latest';

/** The `extra` of a page of the feed. */
export interface FeedExtra {
  pagination: {
    count: number;
    /** Value of `after` for the next page, also of the last one. */
    next_after: string;
    /** Whether the next page can be read at once. It may be empty. */
    has_more: boolean;
  };
  filters: { limit: number };
}

/** The `data` of a 410. */
export interface FeedGone {
  /** Value of `after` with which no event is left out that the log still has. */
  next_after: string;
}

export interface FeedDependencies {
  prisma: PrismaClient;
  /** The primary: a replica is behind the horizon. */
  database: Queryable;
  state: FeedStateReader;
  waits: FeedWaits;
}

const INACTIVE_MESSAGE = 'The webhook is inactive: activate it to read its feed.';

/** Returns a page of the events that match a webhook, as payloads (docs/contract.md#feed). */
export function feedEndpoint(deps: FeedDependencies): AccountEndpoint {
  const { prisma, database, waits } = deps;
  return {
    method: 'GET',
    path: `${SUBSCRIPTION_PATH}/events`,
    access: READ_WEBHOOKS,
    async handle(request) {
      const { account, query, isHead } = request;
      const { after, limit, waitSeconds } = readParameters(query);
      const { id, accountId } = subscriptionKey(request);
      const where = { id, accountId: BigInt(accountId), deletedAt: null };
      const row = await prisma.subscription.findFirst({ where, select: SELECTED });
      if (!row) throw subscriptionNotFound();
      if (!row.active) throw new ConflictError(INACTIVE_MESSAGE);
      const state = await deps.state.read(account.id);
      const from = startOf(after, state);
      const { horizon } = state;
      const matches = matcherOf(row);
      const itemOf = (event: JobRunEvent) => (matches(event) ? payloadOf(event, row) : null);
      const page = await readFeedPage(database, { accountId: account.id, from, horizon, limit, itemOf });
      const sinceSeconds = page.hasMore ? (page.lastRecordedAtSeconds ?? 0) : state.nowSeconds;
      const nextAfter = cursorOf(page.next, state, sinceSeconds);
      const response = pageResponse(page, nextAfter, limit);
      if (waitSeconds === 0 || isHead || page.hasMore || page.items.length > 0) return response;
      const target = { accountId: account.id, from: page.next, matches };
      throw new LongPoll({
        response,
        waitMs: waitSeconds * 1_000,
        query: { after: nextAfter },
        wait: (remainingMs, signal) => waits.wait(target, remainingMs, signal),
      });
    },
  };
}

function readParameters(query: ConstructorParameters<typeof QueryReader>[0]) {
  const reader = new QueryReader(query);
  const after = reader.optional('after', afterValue);
  const limit = reader.optional('limit', integer(1, LIMIT_MAX)) ?? LIMIT_DEFAULT;
  const waitSeconds = reader.optional('wait', integer(0, FEED_WAIT_SECONDS_MAX)) ?? 0;
  reader.check();
  return { after, limit, waitSeconds };
}

const afterValue = createReader<FeedCursor | typeof LATEST | ''>(
  (text) => (text === LATEST || text === '' ? text : parseCursor(text)),
  `must be the next_after of a page, ${LATEST}, or empty`,
);

/** @throws GoneError for a cursor that cannot be used */
function startOf(after: FeedCursor | typeof LATEST | '' | null, state: FeedState): FeedPosition {
  if (after === null || after === '') return FEED_START;
  if (after === LATEST) return { position: state.horizon, eventId: '' };
  const result = resolveCursor(after, state);
  if ('from' in result) return result.from;
  const data: FeedGone = { next_after: cursorOf(result.continueAt, state, after.sinceSeconds) };
  throw new GoneError(
    `${result.gone} Continue with the next_after of this response; events may repeat.`,
    data,
  );
}

const SELECTED = {
  id: true,
  name: true,
  active: true,
  eventTypes: true,
  jobIds: true,
  filters: true,
} satisfies Prisma.SubscriptionSelect;

type FeedWebhook = Prisma.SubscriptionGetPayload<{ select: typeof SELECTED }>;

function matcherOf({ active, eventTypes, jobIds, filters }: FeedWebhook): (event: JobRunEvent) => boolean {
  const sets = filterSets(filters as EventFilters | null);
  const selection = { active, eventTypes, jobIds: new Set(jobIds.map(String)), filters: sets };
  return (event) => eventMatches(selection, event).matches;
}

function payloadOf(event: JobRunEvent, { id, name }: FeedWebhook): { item: object; bytes: number } {
  const text = renderPayload(event, { id, name });
  return { item: JSON.parse(text) as object, bytes: text.length };
}

function pageResponse(
  { items, hasMore }: FeedPage<object>,
  nextAfter: string,
  limit: number,
): EndpointResponse {
  const extra: FeedExtra = {
    pagination: { count: items.length, next_after: nextAfter, has_more: hasMore },
    filters: { limit },
  };
  return { code: 200, data: items, extra };
}

/** @param sinceSeconds time from which on the events after the position were recorded */
function cursorOf(position: FeedPosition, state: FeedState, sinceSeconds: number): string {
  const { generation, oldestSeconds } = state;
  return formatCursor({ ...position, generation, sinceSeconds: Math.max(sinceSeconds, oldestSeconds) });
}
