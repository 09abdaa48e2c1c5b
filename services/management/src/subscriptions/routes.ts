import {
  createHmacSecret,
  createId,
  isId,
  parseSubscription,
  type SubscriptionFields,
  type UrlProblem,
} from '@runhook/contract';
import type { Database, SecretBox } from '@runhook/database';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_WEBHOOKS,
  WRITE_WEBHOOKS,
} from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { InvalidRequestError, NotFoundError } from '../http/errors.ts';
import { QueryReader, searchText, trueOrFalse } from '../http/query-parameters.ts';
import {
  deleteSubscription,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  missingJobIds,
  type SubscriptionKey,
  subscriptionView,
  updateSubscription,
} from './statements.ts';

export const SUBSCRIPTIONS_PATH = '/api/v3/accounts/:account_id/webhooks/subscriptions';
export const SUBSCRIPTION_PATH = '/api/v3/accounts/:account_id/webhooks/subscription/:webhook_id';

/** Everything about subscriptions (docs/contract.md#subscriptions). */
export function subscriptionEndpoints(deps: {
  pool: Database['pool'];
  secrets: SecretBox;
  urlProblem: UrlProblem;
}): AccountEndpoint[] {
  return [
    listSubscriptionsEndpoint(deps),
    createSubscriptionEndpoint(deps),
    getSubscriptionEndpoint(deps),
    updateSubscriptionEndpoint(deps),
    deleteSubscriptionEndpoint(deps),
  ];
}

/** The subscription that the path names. Throws a 404 for what cannot be an id. */
export function subscriptionKey({ account, param }: AccountRequest): SubscriptionKey {
  const id = param('webhook_id');
  if (!isId('subscription', id)) throw subscriptionNotFound();
  return { accountId: account.id, id };
}

/** One answer for a malformed, unknown, deleted or foreign id. */
export function subscriptionNotFound(): NotFoundError {
  return new NotFoundError('Webhook not found.');
}

/**
 * The fields of a create or an update (docs/contract.md#subscriptions). Throws a 400 that names every bad field, or the
 * jobs that the account does not have: whether another account has them is not told.
 */
export async function readSubscriptionFields(
  deps: { pool: Database['pool']; urlProblem: UrlProblem },
  { account, body }: AccountRequest,
): Promise<SubscriptionFields> {
  const { fields, problems } = parseSubscription(body, deps.urlProblem);
  if (problems) throw new InvalidRequestError(problems);
  const missing = await missingJobIds(deps.pool, account.id, fields.job_ids);
  if (missing.length > 0) {
    const message = `job_ids must be ids of jobs of the account; these are not: ${missing.join(', ')}`;
    throw new InvalidRequestError([{ field: 'job_ids', message }]);
  }
  return fields;
}

/** `search` and `active` narrow it (docs/contract.md#subscriptions). */
export function listSubscriptionsEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTIONS_PATH,
    access: READ_WEBHOOKS,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      const filters = {
        active: reader.optional('active', trueOrFalse),
        search: reader.optional('search', searchText),
      };
      reader.check();
      const { rows, totalCount } = await listSubscriptions(pool, { accountId: account.id, filters, ...page });
      return { code: 200, data: rows.map(subscriptionView), extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

/** The only answer that has `hmac_secret`; at rest it is encrypted (docs/contract.md#subscriptions). */
export function createSubscriptionEndpoint(deps: {
  pool: Database['pool'];
  secrets: SecretBox;
  urlProblem: UrlProblem;
}): AccountEndpoint {
  return {
    method: 'POST',
    path: SUBSCRIPTIONS_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const fields = await readSubscriptionFields(deps, request);
      const hmacSecret = createHmacSecret();
      const row = await insertSubscription(deps.pool, {
        accountId: request.account.id,
        id: createId('subscription'),
        fields,
        hmacSecretCiphertext: deps.secrets.encrypt(hmacSecret),
      });
      return { code: 201, data: { ...subscriptionView(row), hmac_secret: hmacSecret } };
    },
  };
}

/** See docs/contract.md#subscriptions. */
export function getSubscriptionEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTION_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const row = await findSubscription(pool, subscriptionKey(request));
      if (!row) throw subscriptionNotFound();
      return { code: 200, data: subscriptionView(row) };
    },
  };
}

/** Replaces: what is left out means its default, but an omitted `active` keeps the stored value (docs/contract.md#subscriptions). */
export function updateSubscriptionEndpoint(deps: {
  pool: Database['pool'];
  urlProblem: UrlProblem;
}): AccountEndpoint {
  return {
    method: 'PUT',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const key = subscriptionKey(request);
      const fields = await readSubscriptionFields(deps, request);
      const row = await updateSubscription(deps.pool, key, fields);
      if (!row) throw subscriptionNotFound();
      return { code: 200, data: subscriptionView(row) };
    },
  };
}

/** See docs/contract.md#subscriptions. */
export function deleteSubscriptionEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'DELETE',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const key = subscriptionKey(request);
      if (!(await deleteSubscription(pool, key))) throw subscriptionNotFound();
      return { code: 200, data: { id: key.id }, isSuccess: true };
    },
  };
}
