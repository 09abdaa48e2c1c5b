import {
  createHmacSecret,
  createId,
  parseSubscription,
  type SubscriptionFields,
  type UrlProblem,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { actorOf, inActorTransaction } from '../audit/actor.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_WEBHOOKS,
  WRITE_WEBHOOKS,
} from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, PreconditionFailedError } from '../http/errors.ts';
import { booleanValue } from '../http/filter-readers.ts';
import { oneOf, QueryReader, searchText, someOf } from '../http/query-parameters.ts';
import { headerColumns } from './custom-headers.ts';
import { optionColumns } from './delivery-options.ts';
import { INCLUDABLE_FIELDS, type SubscriptionRow, subscriptionView } from './fields.ts';
import {
  requireSubscription,
  SUBSCRIPTION_PATH,
  subscriptionKey,
  subscriptionNotFound,
} from './require-subscription.ts';
import { signatureKeyColumns } from './signature-key.ts';
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
 * @param id of the subscription that is updated; null for a new one
 */
async function readSubscriptionFields(
  deps: { prisma: PrismaClient; urlProblem: UrlProblem },
  { account, body }: AccountRequest,
  id: string | null,
): Promise<SubscriptionFields> {
  const { fields, problems } = parseSubscription(body, deps.urlProblem);
  if (problems) throw new InvalidRequestError(problems);
  const missing = await missingJobIds(deps.prisma, { id, accountId: account.id }, fields.job_ids);
  if (missing.length > 0) {
    const message = `job_ids must be ids of jobs of the account; these are not: ${missing.join(', ')}`;
    throw new InvalidRequestError([{ field: 'job_ids', message }]);
  }
  return fields;
}

/** Lists subscriptions with the filters `search`, `active` and `failing`; `include` adds fields to the response. */
function listSubscriptionsEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTIONS_PATH,
    access: READ_WEBHOOKS,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      const filters = {
        active: reader.optional('active', booleanValue),
        failing: reader.optional('failing', booleanValue),
        search: reader.optional('search', searchText),
      };
      const order = reader.optional('order_by', oneOf(SUBSCRIPTION_ORDERS)) ?? 'created_at';
      const included = reader.optional('include', someOf(INCLUDABLE_FIELDS)) ?? undefined;
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

/**
 * Creates a subscription. The response contains `hmac_secret`, which otherwise only a rotation returns; it is stored
 * encrypted (docs/contract.md#subscriptions).
 */
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
      const fields = await readSubscriptionFields(deps, request, null);
      const hmacSecret = createHmacSecret();
      const { account, recorder } = request;
      return await inActorTransaction(deps.prisma, actorOf(request.principal), async (transaction) => {
        // Concurrent calls do not see each other and may exceed the limit by a few.
        if ((await countSubscriptions(transaction, account.id)) >= subscriptionsMax) {
          throw new ConflictError(`The account has ${subscriptionsMax} webhooks, the maximum.`);
        }
        const row = await insertSubscription(transaction, {
          accountId: account.id,
          id: createId('subscription'),
          fields,
          columns: {
            ...headerColumns(fields, null, deps.secrets),
            ...signatureKeyColumns(fields.signature_key, null, deps.secrets),
            ...optionColumns(fields, null, deps.secrets),
          },
          hmacSecretCiphertext: deps.secrets.encrypt(hmacSecret),
        });
        const data = { ...subscriptionView(row, account), hmac_secret: hmacSecret };
        return await recorder.recordWithPrisma(transaction, {
          code: 201,
          data,
          headers: { etag: etagOf(row) },
        });
      });
    },
  };
}

/** Returns one subscription (docs/contract.md#subscriptions). */
function getSubscriptionEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: SUBSCRIPTION_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const included = reader.optional('include', someOf(INCLUDABLE_FIELDS)) ?? undefined;
      reader.check();
      const row = await requireSubscription(prisma, request);
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

const CHANGED_MESSAGE = 'The webhook was changed meanwhile: read it again.';
const CHANGING_MESSAGE = 'The webhook has just changed: try again.';
/**
 * Maximum number of tries of an update: another request may change the headers between the read and the update, so both
 * are retried.
 */
const TRIES_MAX = 5;

/**
 * Replaces the fields: omitted ones get their default, except `active`, the headers, `signature_key` and the delivery
 * options, which keep the stored value, but a new `client_url` activates one that the service deactivated
 * (docs/contract.md#subscriptions).
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
      const fields = await readSubscriptionFields(deps, request, subscriptionKey(request).id);
      const ifMatch = request.header('if-match');
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const storedRow = await requireSubscription(prisma, request);
        if (ifMatch !== undefined && !isMatch(ifMatch, etagOf(storedRow)))
          throw new PreconditionFailedError(CHANGED_MESSAGE);
        const columns = {
          ...headerColumns(fields, storedRow, secrets),
          ...signatureKeyColumns(fields.signature_key, storedRow, secrets),
          ...optionColumns(fields, storedRow, secrets),
        };
        const isConditional = ifMatch !== undefined;
        const response = await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
          const row = await updateSubscription(transaction, storedRow, fields, columns, isConditional);
          if (!row) return null;
          const data = subscriptionView(row, request.account);
          const updatedResponse = { code: 200, data, headers: { etag: etagOf(row) } };
          return await request.recorder.recordWithPrisma(transaction, updatedResponse);
        });
        if (response) return response;
      }
      throw new ConflictError(CHANGING_MESSAGE);
    },
  };
}

/** Deletes a subscription; its log remains until its retention ends (docs/contract.md#subscriptions). */
function deleteSubscriptionEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'DELETE',
    path: SUBSCRIPTION_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const key = subscriptionKey(request);
      return await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
        if (!(await deleteSubscription(transaction, key))) throw subscriptionNotFound();
        const response = { code: 200, data: { id: key.id }, isSuccess: true } as const;
        return await request.recorder.recordWithPrisma(transaction, response);
      });
    },
  };
}
