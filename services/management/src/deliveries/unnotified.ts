// SQL by hand: finds the webhooks without deliveries of a run by the index of runs.
import {
  EVENT_TYPES,
  type EventFilters,
  type EventType,
  filterSets,
  IdSet,
  integerIdFromText,
  isId,
} from '@runhook/contract';
import { column, type Pool, queryRows } from '@runhook/database';
import { type AccountEndpoint, type AccountRequest, READ_ACCOUNT } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { createReader, oneOf, QueryReader } from '../http/query-parameters.ts';
import { readChangeHistory } from './change-history.ts';
import { microsOf } from './delivery.ts';
import {
  type ExplainedEvent,
  type ExplainedWebhook,
  explainWebhook,
  type UnnotifiedView,
} from './explain.ts';
import { RUN_PATH, type RunEventView, type RunRow, readRunEvents } from './run-events.ts';

/**
 * Lists the webhooks of an account that have no delivery of an event of a run, with the reasons
 * (docs/contract.md#why-a-webhook-did-not-hear-about-a-run). Also without webhooks in the plan, which is a reason.
 */
export function unnotifiedEndpoint({ pool }: { pool: Pool }): AccountEndpoint {
  return {
    method: 'GET',
    path: `${RUN_PATH}/unnotified`,
    access: READ_ACCOUNT,
    isSlowRead: true,
    async handle({ account, param, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      const eventType = reader.optional('event_type', oneOf(EVENT_TYPES));
      const webhookId = reader.optional(
        'webhook_id',
        createReader(
          (text) => (isId('subscription', text) ? text : null),
          'must be the id of a webhook: wsu_…',
        ),
      );
      reader.check();
      const runId = integerIdFromText(param('run_id'));
      if (runId === null) throw new NotFoundError();
      const { run, events } = await readRunEvents(pool, { accountId: account.id, runId });
      if (run === null) {
        if (events.length === 0) throw new NotFoundError();
        // Without the run, only the log of its deliveries remains.
        return { code: 200, data: [], extra: pageExtra(page, 0, 0) };
      }
      const explainable = explainableEvents(events, eventType);
      const unnotified = await findUnnotified(pool, { accountId: account.id, runId, webhookId }, explainable);
      const onPage = unnotified.slice(page.offset, page.offset + page.limit);
      const data = await explain(pool, account, { run, events: explainable }, onPage);
      return { code: 200, data, extra: pageExtra(page, unnotified.length, data.length) };
    },
  };
}

/**
 * Returns the events that were matched with webhooks, each type once, although publishers may send several events of
 * one. The others wait, were never reported, or are no longer in the log.
 */
function explainableEvents(events: readonly RunEventView[], eventType: EventType | null): ExplainedEvent[] {
  const byType = new Map<EventType, ExplainedEvent>();
  for (const { event_type: type, state, occurred_at: at } of events) {
    if (state !== 'matched' && state !== 'unmatched') continue;
    if ((eventType === null || eventType === type) && !byType.has(type))
      byType.set(type, { eventType: type, at: BigInt(at) });
  }
  return [...byType.values()];
}

interface Unnotified {
  id: string;
  notifiedTypes: readonly string[];
}

const SELECT_IDS = `
  SELECT id FROM subscriptions
  WHERE account_id = $1 AND deleted_at IS NULL AND ($2::text IS NULL OR id = $2)
  ORDER BY created_at DESC, id`;

const SELECT_NOTIFIED = `
  SELECT subscription_id, array_agg(DISTINCT event_type) AS types
  FROM deliveries WHERE account_id = $1 AND run_id = $2 GROUP BY subscription_id`;

/** Returns the webhooks without a delivery of at least one of the events, newest first. */
async function findUnnotified(
  pool: Pool,
  { accountId, runId, webhookId }: { accountId: number; runId: number; webhookId: string | null },
  events: readonly ExplainedEvent[],
): Promise<Unnotified[]> {
  const [webhooks, notified] = await Promise.all([
    queryRows(pool, { id: column.text }, SELECT_IDS, [accountId, webhookId]),
    queryRows(pool, { subscription_id: column.text, types: column.texts }, SELECT_NOTIFIED, [
      accountId,
      runId,
    ]),
  ]);
  const typesOf = new Map(notified.map(({ subscription_id, types }) => [subscription_id, types]));
  return webhooks
    .map(({ id }) => ({ id, notifiedTypes: typesOf.get(id) ?? [] }))
    .filter(({ notifiedTypes }) => events.some(({ eventType }) => !notifiedTypes.includes(eventType)));
}

const WEBHOOK_COLUMNS = {
  id: column.text,
  name: column.text,
  active: column.flag,
  event_types: column.texts,
  job_ids: column.text,
  filters: column.orNull(column.object),
  is_feed_only: column.flag,
  created_at: column.digits,
};

const SELECT_WEBHOOKS = `
  SELECT id, name, active, event_types, job_ids::text AS job_ids, filters, client_url = '' AS is_feed_only,
    ${microsOf('created_at')} AS created_at
  FROM subscriptions WHERE id = ANY($1::text[])`;

async function readWebhooks(pool: Pool, ids: readonly string[]): Promise<Map<string, ExplainedWebhook>> {
  const rows = await queryRows(pool, WEBHOOK_COLUMNS, SELECT_WEBHOOKS, [ids]);
  return new Map(
    rows.map(({ id, name, active, ...row }) => [
      id,
      {
        id,
        name,
        active,
        eventTypes: row.event_types,
        jobIds: IdSet.fromArrayText(row.job_ids),
        filters: filterSets(row.filters as EventFilters | null),
        isFeedOnly: row.is_feed_only,
        createdAt: BigInt(row.created_at),
      },
    ]),
  );
}

async function explain(
  pool: Pool,
  { id: accountId, plan, deployment }: AccountRequest['account'],
  { run, events }: { run: RunRow; events: readonly ExplainedEvent[] },
  unnotified: readonly Unnotified[],
): Promise<UnnotifiedView[]> {
  if (unnotified.length === 0) return [];
  const ids = unnotified.map(({ id }) => id);
  const [webhooks, history] = await Promise.all([
    readWebhooks(pool, ids),
    readChangeHistory(pool, accountId, ids),
  ]);
  return unnotified.flatMap(({ id, notifiedTypes }) => {
    const webhook = webhooks.get(id);
    if (!webhook) return [];
    const missed = events.filter(({ eventType }) => !notifiedTypes.includes(eventType));
    const types = EVENT_TYPES.filter((type: EventType) => notifiedTypes.includes(type));
    return explainWebhook(webhook, { run, events: missed, notifiedTypes: types }, history.webhook(id), {
      plan,
      deployment,
      changes: history.account,
    });
  });
}
