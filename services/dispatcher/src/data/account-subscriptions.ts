import type { Deployment, EventType, Plan } from '@runhook/contract';
import { type Queryable, runStatement } from '@runhook/database';
import type { Target } from '../delivery.ts';
import { endpointOf } from '../endpoint-of.ts';

/** An account with its active subscriptions, as they were at one moment. */
export interface AccountSubscriptions {
  accountId: number;
  /** One number for all that decides where the account's events go; another one as soon as any of it changes. */
  fingerprint: string;
  plan: Plan;
  deployment: Deployment;
  subscriptions: KnownSubscription[];
}

export interface KnownSubscription {
  id: string;
  name: string;
  eventTypes: readonly EventType[];
  /** Empty means all jobs. */
  jobIds: readonly string[];
  target: Target;
}

/**
 * Of account `a`: its plan, its deployment and the versions of all its subscriptions. Versions of rows only ever grow,
 * and are put together so that their order does not matter: nothing has to be locked or counted in one place, and no
 * order of commits can hide a change.
 */
export const FINGERPRINT = `(
  hashtextextended(a.plan || ' ' || a.deployment, 0)
  # coalesce((SELECT bit_xor(hashtextextended(v.id, v.version)) FROM subscriptions v WHERE v.account_id = a.id), 0))`;

interface Row {
  account_id: string;
  fingerprint: string;
  plan: Plan;
  deployment: Deployment;
  id: string | null;
  name: string;
  event_types: EventType[];
  job_ids: string[];
  client_url: string;
  hmac_secret_ciphertext: string;
}

const SELECT = `
  SELECT a.id AS account_id, ${FINGERPRINT} AS fingerprint, a.plan, a.deployment,
         s.id, s.name, s.event_types, s.job_ids::text[] AS job_ids, s.client_url, s.hmac_secret_ciphertext
  FROM accounts a
  LEFT JOIN subscriptions s ON s.account_id = a.id AND s.active AND s.deleted_at IS NULL
  WHERE a.id = ANY($1::bigint[])`;

/** One query for all; the answer is in the order of the ids, null where there is no such account. */
export async function loadAccountSubscriptions(
  database: Queryable,
  accountIds: readonly number[],
): Promise<(AccountSubscriptions | null)[]> {
  const rows = await runStatement<Row>(database, SELECT, [accountIds], 'load-account-subscriptions');
  const accounts = new Map<number, AccountSubscriptions>();
  for (const row of rows) {
    const accountId = Number(row.account_id);
    const { fingerprint, plan, deployment } = row;
    const account = accounts.get(accountId) ?? {
      accountId,
      fingerprint,
      plan,
      deployment,
      subscriptions: [],
    };
    accounts.set(accountId, account);
    if (row.id !== null) account.subscriptions.push(known(row, row.id));
  }
  return accountIds.map((accountId) => accounts.get(accountId) ?? null);
}

function known(row: Row, id: string): KnownSubscription {
  const { name, client_url: clientUrl, hmac_secret_ciphertext: hmacSecretCiphertext, plan, deployment } = row;
  return {
    id,
    name,
    eventTypes: row.event_types,
    jobIds: row.job_ids,
    target: {
      clientUrl,
      endpoint: endpointOf(clientUrl),
      hmacSecretCiphertext,
      active: true,
      deleted: false,
      plan,
      deployment,
    },
  };
}
