import {
  createHmacSecret,
  createId,
  parseSubscription,
  type SubscriptionFields,
  type UrlProblem,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { actorOf, inTransactionOf } from '../audit/actor.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_WEBHOOKS,
  WRITE_WEBHOOKS,
} from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, PreconditionFailedError } from '../http/errors.ts';
import { oneOf, QueryReader, searchText, someOf, trueOrFalse } from '../http/query-parameters.ts';
import { INCLUDED, type SubscriptionRow, subscriptionView } from './fields.ts';
import { headerColumns } from './own-headers.ts';
import {
  requiredSubscription,
  SUBSCRIPTION_PATH,
  subscriptionKey,
  subscriptionNotFound,
} from './required-subscription.ts';
import {
  countSubscriptions,
  deleteSubscription,
  insertSubscription,
  listSubscriptions,
  missingJobIds,
  SUBSCRIPTION_ORDERS,
  updateSubscription,
} from './statements.ts';

const SUBSCRIPTIONS_PATH = '/api/v3/accounts/:account_id/webhooks/subscriptions';

/** Endpoints of subscriptions (docs/contract.md#subscriptions). */
export function subscriptionEndpoints(deps: {
  prisma: PrismaClient;
  secrets: SecretBox;
  urlProblem: UrlProblem;
  /** Maximum number of subscriptions of an account. */
  subscriptionsMax: number;
}): AccountEndpoint[] {
  return [
    listSubscriptionsEndpoint(deps),
    createSubscriptionEndpoint(deps),
    getSubscriptionEndpoint(deps),
    updateSubscriptionEndpoint(deps),
    deleteSubscriptionEndpoint(deps),
  ];
}

/**
 * Reads the fields of a create or an update (docs/contract.md#subscriptions). Throws a 400 that names every invalid
 * field, or the jobs that the account does not have, without revealing whether another account has them.
 */
async function readSubscriptionFields(
  deps: { prisma: PrismaClient; urlProblem: UrlProblem },
  { account, body }: AccountRequest,
): Promise<SubscriptionFields> {
  const { fields, problems } = parseSubscription(body, deps.urlProblem);
  if (problems) throw new InvalidRequestError(problems);
  const missing = await missingJobIds(deps.prisma, account.id, fields.job_ids);
  if (missing.length > 0) {
    const message = `job_ids must be ids of jobs of the account; these are not: ${missing.join(', ')}`;
    throw new InvalidRequestError([{ field: 'job_ids', message }]);
  }
  return fields;
}

/** Lists subscriptions; `search`, `active`, `failing` filter, `include` adds fields (docs/contract.md#subscriptions). */
function listSubscriptionsEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTIONS_PATH,
    access: READ_WEBHOOKS,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      const filters = {
        active: reader.optional('active', trueOrFalse),
        failing: reader.optional('failing', trueOrFalse),
        search: reader.optional('search', searchText),
      };
      const order = reader.optional('order_by', oneOf(SUBSCRIPTION_ORDERS)) ?? 'created_at';
      const included = reader.optional('include', someOf(INCLUDED)) ?? undefined;
      reader.check();
      const { rows, totalCount } = await listSubscriptions(prisma, {
        accountId: account.id,
        filters,
        order,
        ...page,
      });
      return {
        code: 200,
        data: rows.map((row) => subscriptionView(row, account, included)),
        extra: pageExtra(page, totalCount, rows.length),
      };
    },
  };
}

/** Returns `hmac_secret`, as only a rotation does, too; it is stored encrypted (docs/contract.md#subscriptions). */
function createSubscriptionEndpoint(deps: {
  prisma: PrismaClient;
  secrets: SecretBox;
  urlProblem: UrlProblem;
  subscriptionsMax: number;
}): AccountEndpoint {
  const { subscriptionsMax } = deps;
  return {
    method: 'POST',
    path: SUBSCRIPTIONS_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const fields = await readSubscriptionFields(deps, request);
      const hmacSecret = createHmacSecret();
      const { account, keep } = request;
      return await inTransactionOf(deps.prisma, actorOf(request.principal), async (transaction) => {
        // Concurrent calls do not see each other and may exceed the limit by a few.
        if ((await countSubscriptions(transaction, account.id)) >= subscriptionsMax) {
          throw new ConflictError(`The account has ${subscriptionsMax} webhooks, as many as it may have.`);
        }
        const row = await insertSubscription(transaction, {
          accountId: account.id,
          id: createId('subscription'),
          fields,
          headers: headerColumns(fields, null, deps.secrets),
          hmacSecretCiphertext: deps.secrets.encrypt(hmacSecret),
        });
        const data = { ...subscriptionView(row, account), hmac_secret: hmacSecret };
        return await keep.withinPrisma(transaction, { code: 201, data, headers: { etag: etagOf(row) } });
      });
    },
  };
}

/** See docs/contract.md#subscriptions. */
function getSubscriptionEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTION_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const included = reader.optional('include', someOf(INCLUDED)) ?? undefined;
      reader.check();
      const row = await requiredSubscription(prisma, request);
      const data = subscriptionView(row, request.account, included);
      return { code: 200, data, headers: { etag: etagOf(row) } };
    },
  };
}

/** Returns the entity tag. `updated_at` changes with every PUT and with nothing else. */
function etagOf({ updatedAtMicros }: Pick<SubscriptionRow, 'updatedAtMicros'>): string {
  return `"${updatedAtMicros}"`;
}

function isMatch(ifMatch: string, etag: string): boolean {
  return ifMatch.split(',').some((one) => one.trim() === '*' || one.trim() === etag);
}

const CHANGED = 'The webhook was changed meanwhile: read it again.';
const CHANGING = 'The webhook has just changed: try again.';
/** Another request may change the headers between the read and the update, so both are retried. */
const TRIES_MAX = 5;

/**
 * Replaces the fields: omitted ones get their default, except `active`, `signature_header` and `headers`, which keep
 * the stored value (docs/contract.md#subscriptions).
 */
function updateSubscriptionEndpoint(deps: {
  prisma: PrismaClient;
  secrets: SecretBox;
  urlProblem: UrlProblem;
}): AccountEndpoint {
  const { prisma, secrets } = deps;
  return {
    method: 'PUT',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      subscriptionKey(request);
      const fields = await readSubscriptionFields(deps, request);
      const ifMatch = request.header('if-match');
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const read = await requiredSubscription(prisma, request);
        if (ifMatch !== undefined && !isMatch(ifMatch, etagOf(read)))
          throw new PreconditionFailedError(CHANGED);
        const headers = headerColumns(fields, read, secrets);
        const isAsRead = ifMatch !== undefined;
        const answer = await inTransactionOf(prisma, actorOf(request.principal), async (transaction) => {
          const row = await updateSubscription(transaction, read, fields, headers, isAsRead);
          if (!row) return null;
          const data = subscriptionView(row, request.account);
          const answered = { code: 200, data, headers: { etag: etagOf(row) } };
          return await request.keep.withinPrisma(transaction, answered);
        });
        if (answer) return answer;
      }
      throw new ConflictError(CHANGING);
    },
  };
}

/** See docs/contract.md#subscriptions. */
function deleteSubscriptionEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'DELETE',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const key = subscriptionKey(request);
      return await inTransactionOf(prisma, actorOf(request.principal), async (transaction) => {
        if (!(await deleteSubscription(transaction, key))) throw subscriptionNotFound();
        const answer = { code: 200, data: { id: key.id }, isSuccess: true } as const;
        return await request.keep.withinPrisma(transaction, answer);
      });
    },
  };
}
