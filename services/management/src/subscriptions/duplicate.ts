import {
  codePointLength,
  createHmacSecret,
  createId,
  type EventType,
  nameText,
  SUBSCRIPTION_LIMITS,
  type SubscriptionFields,
  truncateText,
} from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { DeliveryQueue } from '@runhook/queue';
import Joi from 'joi';
import { actorOf, inActorTransaction } from '../audit/actor.ts';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { parseBody } from '../http/parse-body.ts';
import { copiedOptions, newlySetOptions } from './delivery-options.ts';
import { subscriptionView } from './fields.ts';
import { newlyWithoutEndpoint, requireDispatchersSupport } from './older-dispatchers.ts';
import {
  etagOf,
  requireFreeSubscription,
  requireSubscription,
  SUBSCRIPTION_PATH,
} from './require-subscription.ts';
import { signatureKeyColumns } from './signature-key.ts';
import { insertSubscription, type SubscriptionWithSecret } from './statements.ts';

const { nameCharactersMax } = SUBSCRIPTION_LIMITS;
const COPY_SUFFIX = ' (copy)';

/**
 * Creates an inactive copy of a subscription with a new secret and, if the original has a key pair, a new one. Headers and
 * options of the format are copied with their values, which the copy sends to the same server: an update that changes its
 * `client_url` to another server must supply them again.
 */
export function duplicateSubscriptionEndpoint(deps: {
  prisma: PrismaClient;
  secrets: SecretBox;
  deliveryQueue: Pick<DeliveryQueue, 'hasOlderDispatcher'>;
  /** Maximum number of subscriptions of an account. */
  subscriptionsMax: number;
}): AccountEndpoint {
  const { prisma, secrets, deliveryQueue, subscriptionsMax } = deps;
  return {
    method: 'POST',
    path: `${SUBSCRIPTION_PATH}/duplicate`,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const { account, recorder } = request;
      const original = await requireSubscription(prisma, request);
      const { name } = parseBody(schema, request.body);
      const options = copiedOptions(original);
      const setOptions = [
        ...newlySetOptions(options, null),
        ...newlyWithoutEndpoint(original.clientUrl, null),
      ];
      if (setOptions.length > 0) await requireDispatchersSupport(deliveryQueue, setOptions);
      const hmacSecret = createHmacSecret();
      return await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
        await requireFreeSubscription(transaction, account.id, subscriptionsMax);
        const row = await insertSubscription(transaction, {
          accountId: account.id,
          id: createId('subscription'),
          fields: copiedFields(original, name ?? nameOfCopy(original.name)),
          columns: {
            signatureHeader: original.signatureHeader,
            headerNames: original.headerNames,
            headersCiphertext: original.headersCiphertext,
            ...signatureKeyColumns(original.signaturePublicKey === null ? null : 'ed25519', null, secrets),
            ...options,
          },
          hmacSecretCiphertext: secrets.encrypt(hmacSecret),
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

const schema = Joi.object<{ name?: string }>({
  name: nameText(nameCharactersMax).allow(null).empty(null),
}).default({});

function copiedFields(original: SubscriptionWithSecret, name: string): SubscriptionFields {
  return {
    name,
    description: original.description,
    event_types: original.eventTypes as EventType[],
    job_ids: original.jobIds.map(Number),
    client_url: original.clientUrl,
    active: false,
  };
}

function nameOfCopy(name: string): string {
  return truncateText(name, nameCharactersMax - codePointLength(COPY_SUFFIX)) + COPY_SUFFIX;
}
