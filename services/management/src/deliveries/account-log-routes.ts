import { EVENT_TYPES, integerIdFromText, isId } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import { isBlocked } from '@runhook/egress';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { InvalidRequestError } from '../http/errors.ts';
import {
  createReader,
  integer,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  oneOf,
  QueryReader,
  timestamp,
} from '../http/query-parameters.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import { createAccountCounts } from './account-counts.ts';
import { readAccountLog } from './account-log.ts';
import { type AccountLogFilters, findWebhooks } from './account-log-conditions.ts';
import { DELIVERY_STATUSES } from './delivery.ts';
import { readHistogram } from './histogram.ts';
import type { LogCursor } from './log-segments.ts';
import { DAY_MICROS } from './page-locator.ts';
import { addRateLimitWaits } from './rate-limit-wait.ts';
import { runEventsEndpoint } from './run-events.ts';
import { unnotifiedEndpoint } from './unnotified.ts';

const LOG_PATH = '/api/v3/accounts/:account_id/webhooks/deliveries';

/** The `extra` of a page with a cursor instead of an offset. */
export interface AccountLogExtra {
  pagination: {
    count: number;
    /** Cursor for `before` of the next page; null on the last page. */
    next_before: string | null;
    /** Set if a page is not full although more may match: deliveries created before this time were not read. */
    scanned_until: string | null;
  };
  filters: { limit: number };
}

/** The log of all webhooks of an account, as a list and as a histogram (docs/contract.md#the-log-of-an-account). */
export function accountLogEndpoints({ pool, reads }: { pool: Pool; reads: ReplicaReads }): AccountEndpoint[] {
  return [
    listEndpoint(reads),
    histogramEndpoint(reads),
    runEventsEndpoint({ pool }),
    unnotifiedEndpoint({ pool }),
  ];
}

function listEndpoint(reads: ReplicaReads): AccountEndpoint {
  return {
    method: 'GET',
    path: LOG_PATH,
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const { account, query } = request;
      const reader = new QueryReader(query);
      const limit = reader.optional('limit', integer(1, LIMIT_MAX)) ?? LIMIT_DEFAULT;
      const cursor = reader.optional(
        'before',
        createReader(parseCursor, 'must be the next_before of a page'),
      );
      const filters = readFilters(reader);
      reader.check();
      const database = reads.databaseFor(request);
      const webhooks = await findWebhooks(database, account.id, filters);
      const { rows, next, isTruncated } = await readAccountLog(database, {
        accountId: account.id,
        webhooks,
        filters,
        cursor,
        limit,
      });
      const extra: AccountLogExtra = {
        pagination: {
          count: rows.length,
          next_before: next === null ? null : formatCursor(next),
          scanned_until: isTruncated && next !== null ? cursorTimestamp(next) : null,
        },
        filters: { limit },
      };
      return { code: 200, data: await addRateLimitWaits(database, rows), extra };
    },
  };
}

const HISTOGRAM_DAYS_DEFAULT = 1n;
export const HISTOGRAM_DAYS_MAX = 400;

function histogramEndpoint(reads: ReplicaReads): AccountEndpoint {
  const accountCounts = createAccountCounts(reads.background);
  return {
    method: 'GET',
    path: `${LOG_PATH}/histogram`,
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const { account, query } = request;
      const reader = new QueryReader(query);
      const filters = readFilters(reader);
      reader.check();
      const until = BigInt(filters.until ?? String(Date.now() * 1000));
      const since = BigInt(filters.since ?? String(until - HISTOGRAM_DAYS_DEFAULT * DAY_MICROS));
      if (since >= until) throw invalidField('until', 'until must be later than since');
      if (until - since > BigInt(HISTOGRAM_DAYS_MAX) * DAY_MICROS)
        throw invalidField('since', `since must not be more than ${HISTOGRAM_DAYS_MAX} days before until`);
      const database = reads.databaseFor(request);
      const webhooks = await findWebhooks(database, account.id, filters);
      const histogramQuery = { accountId: account.id, webhooks, filters, window: { since, until } };
      return { code: 200, data: await readHistogram(database, accountCounts, histogramQuery) };
    },
  };
}

function invalidField(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError([{ field, message }]);
}

const id = createReader(integerIdFromText, 'must be an id: digits');
const ERROR_CODE_PATTERN = /^[a-z_]{1,64}$/;
const SUBSCRIPTIONS_MAX = 100;
const DURATION_MAX_MS = 3_600_000;

function readFilters(reader: QueryReader): AccountLogFilters {
  const duration = integer(0, DURATION_MAX_MS);
  return {
    runId: reader.optional('run_id', id),
    eventId: reader.optional(
      'event_id',
      createReader((text) => (isId('event', text) ? text : null), 'must be the id of an event: wev_…'),
    ),
    subscriptionIds: reader.optional(
      'subscription_id',
      createReader(
        subscriptionIds,
        `must be up to ${SUBSCRIPTIONS_MAX} ids of webhooks, separated by commas`,
      ),
    ),
    jobId: reader.optional('job_id', id),
    status: reader.optional('status', oneOf(DELIVERY_STATUSES)),
    eventType: reader.optional('event_type', oneOf(EVENT_TYPES)),
    httpStatusCode: reader.optional('http_status_code', integer(0, 999)),
    errorCode: reader.optional(
      'error_code',
      createReader(
        // A filter by the code of a rule would show which rule blocked a request.
        (text) => (ERROR_CODE_PATTERN.test(text) && !isBlocked(text) ? text : null),
        'must be an error code of the API, such as timeout',
      ),
    ),
    durationMinMs: reader.optional('duration_min_ms', duration),
    durationMaxMs: reader.optional('duration_max_ms', duration),
    since: reader.optional('since', timestamp),
    until: reader.optional('until', timestamp),
  };
}

function subscriptionIds(text: string): string[] | null {
  const ids = text.split(',');
  return ids.length <= SUBSCRIPTIONS_MAX && ids.every((one) => isId('subscription', one)) ? ids : null;
}

const CURSOR_PATTERN = /^(\d{4}-\d{2}-\d{2})\.(\d{1,18})(?:\.(wdl_[0-9A-Za-z]{27}))?$/;

function parseCursor(text: string): LogCursor | null {
  const [, day, createdAt, deliveryId = ''] = CURSOR_PATTERN.exec(text) ?? [];
  if (day === undefined || createdAt === undefined || Number.isNaN(Date.parse(`${day}T00:00Z`))) return null;
  if (new Date(`${day}T00:00Z`).toISOString().slice(0, 10) !== day) return null;
  return { day, createdAt: BigInt(createdAt), id: deliveryId };
}

function formatCursor({ day, createdAt, id: deliveryId }: LogCursor): string {
  return `${day}.${createdAt}${deliveryId === '' ? '' : `.${deliveryId}`}`;
}

/** Returns the time of the cursor, but not later than the end of its day. */
function cursorTimestamp({ day, createdAt }: LogCursor): string {
  const end = BigInt(Date.parse(`${day}T00:00Z`)) * 1000n + DAY_MICROS;
  return String(createdAt < end ? createdAt : end);
}
