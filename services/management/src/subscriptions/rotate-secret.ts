import { createHmacSecret, type Problem, problemsOf, VALIDATION_OPTIONS } from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { actorOf, inTransactionOf } from '../audit/actor.ts';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError, InvalidRequestError } from '../http/errors.ts';
import { SHOWN, type SubscriptionRow, subscriptionView } from './fields.ts';
import { requiredSubscription, SUBSCRIPTION_PATH } from './required-subscription.ts';
import { beginRotation, finishRotation, OVERLAP_HOURS, type RotationRequest } from './rotation.ts';

const UNDER_WAY = 'A rotation of the secret is under way, or has just begun: finish it before the next.';
const NONE_UNDER_WAY = 'No rotation of the secret is under way.';

/**
 * Adds a new secret that signs together with the current one, or replaces it if there is no overlap. The clock decides
 * at each attempt which secrets sign (docs/contract.md#rotating-a-secret).
 */
export function rotateSecretEndpoint(deps: { prisma: PrismaClient; secrets: SecretBox }): AccountEndpoint {
  const { prisma, secrets } = deps;
  return {
    method: 'POST',
    path: `${SUBSCRIPTION_PATH}/rotate-secret`,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const { id, secretGeneration } = await requiredSubscription(prisma, request);
      const { fields, problems } = parseRotationRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      const hmacSecret = createHmacSecret();
      return await inTransactionOf(prisma, actorOf(request.principal), async (transaction) => {
        const hasBegun = await beginRotation(transaction, {
          subscriptionId: id,
          generation: secretGeneration,
          ciphertext: secrets.encrypt(hmacSecret),
          overlapHours: fields.overlap_hours,
        });
        if (!hasBegun) throw new ConflictError(UNDER_WAY);
        const row = await shown(transaction, id);
        const data = { ...subscriptionView(row, request.account), hmac_secret: hmacSecret };
        return await request.keep.withinPrisma(transaction, { code: 200, data });
      });
    },
  };
}

/** Ends the overlap early and deletes the old secret. */
export function finishRotationEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'POST',
    path: `${SUBSCRIPTION_PATH}/finish-rotation`,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const { id } = await requiredSubscription(prisma, request);
      return await inTransactionOf(prisma, actorOf(request.principal), async (transaction) => {
        if (!(await finishRotation(transaction, id))) throw new ConflictError(NONE_UNDER_WAY);
        const data = subscriptionView(await shown(transaction, id), request.account);
        return await request.keep.withinPrisma(transaction, { code: 200, data });
      });
    },
  };
}

async function shown(transaction: Prisma.TransactionClient, id: string): Promise<SubscriptionRow> {
  return await transaction.subscription.findUniqueOrThrow({ where: { id }, select: SHOWN });
}

const schema = Joi.object<RotationRequest>({
  overlap_hours: Joi.number()
    .integer()
    .min(0)
    .max(OVERLAP_HOURS.max)
    .empty(null)
    .default(OVERLAP_HOURS.default),
}).default({ overlap_hours: OVERLAP_HOURS.default });

function parseRotationRequest(
  body: unknown,
): { fields: RotationRequest; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = schema.validate(body, VALIDATION_OPTIONS);
  return error ? { problems: problemsOf(error, 'body') } : { fields: value };
}
