import {
  type Deployment,
  type JobRunEvent,
  type Plan,
  subscriptionMatches,
  webhooksUnavailableReason,
} from '@runhook/contract';
import { runStatement } from '@runhook/database';
import type pg from 'pg';
import type { Target } from '../delivery.ts';

export interface MatchedSubscription {
  id: string;
  name: string;
  target: Target;
}

/** The subscriptions an event fires for, or null when its account does not exist. */
export type Match = MatchedSubscription[] | null;

interface Row {
  account_id: string;
  plan: Plan;
  deployment: Deployment;
  id: string | null;
  name: string;
  event_types: string[];
  job_ids: string[];
  client_url: string;
  hmac_secret_ciphertext: string;
}

const ACTIVE_SUBSCRIPTIONS = `
  SELECT a.id AS account_id, a.plan, a.deployment,
         s.id, s.name, s.event_types, s.job_ids::text[] AS job_ids, s.client_url, s.hmac_secret_ciphertext
  FROM accounts a
  LEFT JOIN subscriptions s ON s.account_id = a.id AND s.active AND s.deleted_at IS NULL
  WHERE a.id = ANY($1::bigint[])`;

/** One query for all the events; the answer is in their order. */
export async function matchSubscriptions(pool: pg.Pool, events: readonly JobRunEvent[]): Promise<Match[]> {
  const accountIds = [...new Set(events.map(({ accountId }) => accountId))];
  const rows = await runStatement<Row>(pool, ACTIVE_SUBSCRIPTIONS, [accountIds], 'match-subscriptions');
  const rowsByAccount = new Map<number, Row[]>();
  for (const row of rows) {
    const accountId = Number(row.account_id);
    const ofAccount = rowsByAccount.get(accountId);
    if (ofAccount) ofAccount.push(row);
    else rowsByAccount.set(accountId, [row]);
  }
  return events.map((event) => {
    const candidates = rowsByAccount.get(event.accountId);
    return candidates ? candidates.filter((row) => firesFor(row, event)).map(matched) : null;
  });
}

function firesFor(row: Row, event: JobRunEvent): boolean {
  if (row.id === null || webhooksUnavailableReason(row)) return false;
  const subscription = { active: true, eventTypes: row.event_types, jobIds: row.job_ids };
  return subscriptionMatches(subscription, { eventType: event.eventType, jobId: event.data.jobId });
}

function matched(row: Row): MatchedSubscription {
  const {
    id,
    name,
    client_url: clientUrl,
    hmac_secret_ciphertext: hmacSecretCiphertext,
    plan,
    deployment,
  } = row;
  const target = { clientUrl, hmacSecretCiphertext, active: true, deleted: false, plan, deployment };
  return { id: id as string, name, target };
}
