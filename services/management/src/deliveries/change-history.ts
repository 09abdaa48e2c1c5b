// SQL by hand: filters the newest entries of the audit log, of which only those of an account are indexed.
import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import { column, type Pool, parseStored, queryRows, type RowOf } from '@runhook/database';
import type { AccountChange, Change, WebhookChanges } from './explain.ts';

/** Number of entries of the account that are searched for changes of webhooks: no index has the webhooks. */
export const SEARCHED_ENTRIES_MAX = 10_000;

const ENTRY_COLUMNS = {
  action: column.oneOf(['webhook.created', 'webhook.changed', 'webhook.deactivated', 'account.changed']),
  actor_kind: column.text,
  actor_name: column.orNull(column.text),
  target_id: column.text,
  details: column.object,
  at: column.digits,
};
type Entry = RowOf<typeof ENTRY_COLUMNS>;

const SELECT_ENTRIES = `
  SELECT action, actor_kind, actor_name, target_id, details, created_at_micros AS at
  FROM (SELECT * FROM audit_entries WHERE account_id = $1 ORDER BY id DESC LIMIT ${SEARCHED_ENTRIES_MAX}) newest
  WHERE action = 'account.changed'
    OR (action IN ('webhook.created', 'webhook.changed', 'webhook.deactivated') AND target_id = ANY($2::text[]))
  ORDER BY id DESC`;

/** The changes of webhooks and of the account that decide whether events are matched. */
export interface ChangeHistory {
  webhook(id: string): WebhookChanges;
  /** Newest first. */
  account: AccountChange[];
}

export async function readChangeHistory(
  pool: Pool,
  accountId: number,
  subscriptionIds: readonly string[],
): Promise<ChangeHistory> {
  const entries = await queryRows(pool, ENTRY_COLUMNS, SELECT_ENTRIES, [accountId, subscriptionIds]);
  const webhooks = new Map<string, WebhookChanges>();
  const account: AccountChange[] = [];
  for (const entry of entries) {
    if (entry.action === 'account.changed') {
      if (fieldsOf(entry).some((field) => field === 'plan' || field === 'deployment'))
        account.push(accountChange(entry));
      continue;
    }
    const changes = webhooks.get(entry.target_id) ?? noChanges();
    webhooks.set(entry.target_id, changes);
    addChange(changes, entry);
  }
  return { webhook: (id) => webhooks.get(id) ?? noChanges(), account };
}

const noChanges = (): WebhookChanges => ({ toggles: [], selection: [], creation: null });

const SELECTION_FIELDS = ['active', 'event_types', 'job_ids', 'filters', 'client_url'];

function addChange(changes: WebhookChanges, entry: Entry): void {
  const change = changeOf(entry);
  const fields = fieldsOf(entry);
  if (entry.action === 'webhook.created') changes.creation = change;
  if (fields.includes('active')) changes.toggles.push(change);
  if (SELECTION_FIELDS.some((field) => fields.includes(field))) changes.selection.push(change);
}

function fieldsOf({ action, details: { changed } }: Entry): readonly unknown[] {
  if (action === 'webhook.deactivated') return ['active'];
  return Array.isArray(changed) ? changed : [];
}

function changeOf({ actor_kind: kind, actor_name: name, at }: Entry): Change {
  return {
    at: BigInt(at),
    by: name ?? (kind === 'service' ? 'Runhook' : `${kind === 'user' ? 'a' : 'an'} ${kind}`),
  };
}

function accountChange(entry: Entry): AccountChange {
  const { plan, deployment } = entry.details;
  return {
    ...changeOf(entry),
    plan: parseStored(PLANS, String(plan)),
    deployment: parseStored(DEPLOYMENTS, String(deployment)),
  };
}
