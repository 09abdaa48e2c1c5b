import {
  createHmacSecret,
  createId,
  EVENT_TYPES,
  type Problem,
  parseSubscription,
  type SubscriptionFields,
  type UrlProblem,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { DeliveryQueue } from '@runhook/queue';
import { actorOf, inActorTransaction } from '../audit/actor.ts';
import {
  type AccountEndpoint,
  type AccountRequest,
  READ_WEBHOOKS,
  WRITE_WEBHOOKS,
} from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { ConflictError, InvalidRequestError, PreconditionFailedError } from '../http/errors.ts';
import { booleanValue, listOf } from '../http/filter-readers.ts';
import { oneOf, QueryReader, searchText, someOf } from '../http/query-parameters.ts';
import { headerColumns } from './custom-headers.ts';
import { newlySetOptions, optionColumns } from './delivery-options.ts';
import { duplicateSubscriptionEndpoint } from './duplicate.ts';
import { INCLUDABLE_FIELDS, subscriptionView } from './fields.ts';
import { labelFilters } from './label-filters.ts';
import { newlyWithoutEndpoint, requireDispatchersSupport } from './older-dispatchers.ts';
import {
  etagOf,
  requireFreeSubscription,
  requireSubscription,
  SUBSCRIPTION_PATH,
  subscriptionKey,
  subscriptionNotFound,
} from './require-subscription.ts';
import { signatureKeyColumns } from './signature-key.ts';
import {
  type DerivedColumns,
  deleteSubscription,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  missingEnvironmentIds,
  missingJobIds,
  missingProjectIds,
  SUBSCRIPTION_ORDERS,
  type SubscriptionKey,
  type SubscriptionWithSecret,
  updateSubscription,
} from './statements.ts';

const SUBSCRIPTIONS_PATH = '/api/v3/accounts/:account_id/webhooks/subscriptions';

interface WriteDeps {
  prisma: PrismaClient;
  secrets: SecretBox;
  urlProblem: UrlProblem;
  deliveryQueue: Pick<DeliveryQueue, 'hasOlderDispatcher'>;
}

interface CreateDeps extends WriteDeps {
  /** Maximum number of subscriptions of an account. */
  subscriptionsMax: number;
}

/** Endpoints of subscriptions (docs/contract.md#subscriptions). */
export function subscriptionEndpoints(deps: CreateDeps): AccountEndpoint[] {
  return [
    listSubscriptionsEndpoint(deps),
    createSubscriptionEndpoint(deps),
    duplicateSubscriptionEndpoint(deps),
    getSubscriptionEndpoint(deps),
    updateSubscriptionEndpoint(deps),
    deleteSubscriptionEndpoint(deps),
  ];
}

/** Returns the columns of the request. Throws a 400, or a 409 while a dispatcher does not support one that is newly set. */
async function deriveColumns(
  { secrets, deliveryQueue }: Pick<WriteDeps, 'secrets' | 'deliveryQueue'>,
  fields: SubscriptionFields,
  stored: SubscriptionWithSecret | null,
): Promise<DerivedColumns> {
  const options = optionColumns(fields, stored, secrets);
  const columns = {
    ...headerColumns(fields, stored, secrets),
    ...signatureKeyColumns(fields.signature_key, stored, secrets),
    ...options,
  };
  const newOptions = [
    ...newlySetOptions(options, stored),
    ...newlyWithoutEndpoint(fields.client_url, stored),
  ];
  if (newOptions.length > 0) await requireDispatchersSupport(deliveryQueue, newOptions);
  return columns;
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
  const fields = await parseFields(deps, body, id === null ? null : { id, accountId: account.id });
  const missing = await missingJobIds(deps.prisma, { id, accountId: account.id }, fields.job_ids);
  const { environment_ids: environmentIds = [], project_ids: projectIds = [] } = fields.filters ?? {};
  const [foreignEnvironments, foreignProjects] = await Promise.all([
    missingEnvironmentIds(deps.prisma, account.id, environmentIds),
    missingProjectIds(deps.prisma, account.id, projectIds),
  ]);
  const problems = [
    ...foreignIdProblems('job_ids', 'jobs', missing),
    ...foreignIdProblems('filters.environment_ids', 'environments', foreignEnvironments),
    ...foreignIdProblems('filters.project_ids', 'projects', foreignProjects),
  ];
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return fields;
}

/**
 * Parses the body. A stored URL stays valid while unchanged, although an older release or other rules accepted it, because the
 * webhook could not be deactivated otherwise: a PUT has all fields. Attempts check it again.
 */
async function parseFields(
  { prisma, urlProblem }: { prisma: PrismaClient; urlProblem: UrlProblem },
  body: unknown,
  key: SubscriptionKey | null,
): Promise<SubscriptionFields> {
  const { fields, problems } = parseSubscription(body, urlProblem);
  if (fields) return fields;
  const stored =
    key !== null && problems.some(({ field }) => field === 'client_url')
      ? await findSubscription(prisma, key)
      : null;
  const parsing = parseSubscription(body, (url) => (url === stored?.clientUrl ? null : urlProblem(url)));
  if (parsing.problems) throw new InvalidRequestError(parsing.problems);
  return parsing.fields;
}

function foreignIdProblems(field: string, what: string, ids: readonly number[]): Problem[] {
  if (ids.length === 0) return [];
  const message = `${field} must be ids of ${what} of the account; these are not: ${ids.join(', ')}`;
  return [{ field, message }];
}

const eventTypesIn = listOf(
  (text) => EVENT_TYPES.find((type) => type === text) ?? null,
  `must be event types (${EVENT_TYPES.join(', ')}), separated by commas`,
);

/** Lists subscriptions with filters; `include` adds fields to the response. */
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
        eventTypes: reader.list('event_types', eventTypesIn),
        labels: reader.list('label', labelFilters) ?? [],
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
function createSubscriptionEndpoint(deps: CreateDeps): AccountEndpoint {
  const { subscriptionsMax } = deps;
  return {
    method: 'POST',
    path: SUBSCRIPTIONS_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const fields = await readSubscriptionFields(deps, request, null);
      const columns = await deriveColumns(deps, fields, null);
      const hmacSecret = createHmacSecret();
      const { account, recorder } = request;
      return await inActorTransaction(deps.prisma, actorOf(request.principal), async (transaction) => {
        await requireFreeSubscription(transaction, account.id, subscriptionsMax);
        const row = await insertSubscription(transaction, {
          accountId: account.id,
          id: createId('subscription'),
          fields,
          columns,
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
function updateSubscriptionEndpoint(deps: WriteDeps): AccountEndpoint {
  const { prisma } = deps;
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
        const columns = await deriveColumns(deps, fields, storedRow);
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
