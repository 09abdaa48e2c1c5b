import { addMembership, createUser } from '@runhook/database';
import { queueBackends, seedAccount, seedDeliveries, testSecrets } from '@runhook/testing';
import { callApi, openSystem, type System } from '../../observability/system.ts';
import type { RunningService } from '../../services.ts';

/** An account with one resource of each kind, and credentials with all permissions. */
export interface Party {
  accountId: number;
  /** Service token, `account_admin`. */
  token: string;
  apiKey: string;
  /** Ids by the names of path parameters. */
  ids: Record<string, string | number>;
  /** Values by the names of members of bodies. */
  body: Record<string, unknown>;
  /** Webhooks that may be deleted. */
  spareWebhookIds: string[];
  /** Jobs that may be deleted. */
  spareJobIds: string[];
  /** Texts that occur in the resources of this account only. */
  marks: string[];
}

export interface FuzzWorld {
  system: System;
  management: RunningService;
  /** The account under attack. */
  first: Party;
  /** The attacker, who must not read or change anything of the first account. */
  second: Party;
  /** Returns all rows of the first account as text. */
  readFirst(): Promise<string>;
  /** Completes deliveries and recoveries as a dispatcher would, so that they can be redelivered and recovered again. */
  settle(): Promise<void>;
}

/** Disables limits, so that a rejection has no other cause than the request. */
const UNLIMITED = {
  API_RATE_LIMIT_PER_MINUTE: '10000000',
  SIGN_IN_ATTEMPTS_PER_EMAIL: '10000',
  SIGN_IN_ATTEMPTS_PER_ADDRESS: '1000000',
  SUBSCRIPTIONS_PER_ACCOUNT: '100000',
  JOBS_PER_ACCOUNT: '1000000',
  DELIVERY_TIMEOUT_MS: '1000',
  LOG_LEVEL: 'info',
};
const DELIVERIES = 200;

export async function openFuzzWorld(): Promise<FuzzWorld> {
  const backend = queueBackends().at(-1);
  if (!backend) throw new Error('there is no queue back end');
  const system = await openSystem(backend);
  const management = await system.start('management', UNLIMITED);
  const first = await openParty(system, management, { accountId: system.account.id, name: 'first' });
  const { id: accountId } = await seedAccount(system.database);
  const second = await openParty(system, management, { accountId, name: 'second' });
  return {
    system,
    management,
    first,
    second,
    readFirst: () => readAccount(system, first),
    settle: () => settle(system),
  };
}

async function openParty(
  system: System,
  management: RunningService,
  { accountId, name }: { accountId: number; name: string },
): Promise<Party> {
  const { database, receiver } = system;
  const { prisma, pool } = database;
  const mark = `belongs-to-the-${name}`;
  const email = `${mark}@example.com`;
  const user = { email, name: mark, password: `${mark} and a password` };
  const { id: userId, apiKey } = await createUser(prisma, testSecrets, user);
  await addMembership(prisma, { accountId, userId, license: 'developer', permissionSets: ['account_admin'] });
  const { token } = await system.newToken(accountId);
  const call = async (path: string, body: object) => {
    const { status, data } = await callApi({ token }, management, { method: 'POST', path, body });
    if (status >= 300) throw new Error(`${path} returned ${status}`);
    return data;
  };
  const names = { name: mark, project_name: mark, environment_name: mark };
  const { id: jobId } = await call(`/v2/accounts/${accountId}/jobs/`, names);
  const run = await call(`/v2/accounts/${accountId}/runs/`, { job_id: jobId, engine_version: mark });
  const webhooks = `/v3/accounts/${accountId}/webhooks`;
  const body = { job_ids: [jobId], client_url: receiver.url };
  const event_types = ['job.run.completed'];
  const subscription = await call(`${webhooks}/subscriptions`, { ...body, name: mark, event_types });
  const subscriptionId = String(subscription.id);
  await seedDeliveries(pool, { accountId, subscriptionId, count: DELIVERIES, days: 1 });
  const { rows } = await pool.query<{ id: string }>(
    'SELECT id FROM deliveries WHERE subscription_id = $1 ORDER BY id LIMIT 1',
    [subscriptionId],
  );
  const since = new Date(Date.now() - 86_400_000).toISOString();
  const recovery = await call(`${webhooks}/subscription/${subscriptionId}/recover`, { since });
  return {
    accountId,
    token,
    apiKey,
    ids: {
      user_id: userId,
      webhook_id: subscriptionId,
      delivery_id: rows[0]?.id ?? '',
      recovery_id: String(recovery.id),
      run_id: Number(run.id),
    },
    body: { ...body, job_id: jobId, name: mark },
    spareWebhookIds: [],
    spareJobIds: [],
    marks: [mark, token, apiKey, subscriptionId, rows[0]?.id ?? '', String(recovery.id)],
  };
}

async function settle({ database }: System): Promise<void> {
  await database.pool.query(
    `UPDATE deliveries SET status = 'failed', completed_at = now() - interval '1 second', next_attempt_at = NULL`,
  );
  await database.pool.query(
    `UPDATE recoveries SET status = 'done', completed_at = now() WHERE status = 'running'`,
  );
}

const SELECT_ACCOUNT_ROWS = [
  'SELECT to_jsonb(t)::text AS row FROM subscriptions t WHERE account_id = $1',
  'SELECT to_jsonb(t)::text AS row FROM deliveries t WHERE account_id = $1',
  'SELECT to_jsonb(t)::text AS row FROM jobs t WHERE account_id = $1',
  'SELECT to_jsonb(t)::text AS row FROM runs t WHERE account_id = $1',
  'SELECT to_jsonb(t)::text AS row FROM memberships t WHERE account_id = $1',
  // Management stores the last use of the account's own token some time after the call.
  `SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM service_tokens t WHERE account_id = $1`,
  'SELECT to_jsonb(t)::text AS row FROM events t WHERE account_id = $1',
  `SELECT to_jsonb(t)::text AS row FROM recoveries t
   WHERE subscription_id IN (SELECT id FROM subscriptions WHERE account_id = $1)`,
  `SELECT to_jsonb(t)::text AS row FROM users t
   WHERE id IN (SELECT user_id FROM memberships WHERE account_id = $1)`,
];

async function readAccount({ database }: System, { accountId }: Party): Promise<string> {
  const texts = await Promise.all(
    SELECT_ACCOUNT_ROWS.map(
      async (sql) => (await database.pool.query<{ row: string }>(`${sql} ORDER BY 1`, [accountId])).rows,
    ),
  );
  return texts
    .flat()
    .map(({ row }) => row)
    .join('\n');
}
