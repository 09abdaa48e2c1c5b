import { createHmacSecret, type Problem, toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { actorOf, inActorTransaction } from '../audit/actor.ts';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError, InvalidRequestError } from '../http/errors.ts';
import { SUBSCRIPTION_COLUMNS, type SubscriptionRow, subscriptionView } from './fields.ts';
import { requireSubscription, SUBSCRIPTION_PATH } from './require-subscription.ts';
import { beginRotation, finishRotation, OVERLAP_HOURS, type RotationRequest } from './rotation.ts';

const ROTATION_IN_PROGRESS =
  'A rotation of the secret is under way, or has just begun: finish it before the next.';
const NO_ROTATION_IN_PROGRESS = 'No rotation of the secret is under way.';

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
      const { id, secretGeneration } = await requireSubscription(prisma, request);
      const { fields, problems } = parseRotationRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      const hmacSecret = createHmacSecret();
      return await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
        const hasBegun = await beginRotation(transaction, {
          subscriptionId: id,
          generation: secretGeneration,
          ciphertext: secrets.encrypt(hmacSecret),
          overlapHours: fields.overlap_hours,
        });
        if (!hasBegun) throw new ConflictError(ROTATION_IN_PROGRESS);
        const row = await readSubscriptionRow(transaction, id);
        const data = { ...subscriptionView(row, request.account), hmac_secret: hmacSecret };
        return await request.recorder.recordWithPrisma(transaction, { code: 200, data });
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
      const { id } = await requireSubscription(prisma, request);
      return await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
        if (!(await finishRotation(transaction, id))) throw new ConflictError(NO_ROTATION_IN_PROGRESS);
        const data = subscriptionView(await readSubscriptionRow(transaction, id), request.account);
        return await request.recorder.recordWithPrisma(transaction, { code: 200, data });
      });
    },
  };
}

async function readSubscriptionRow(
  transaction: Prisma.TransactionClient,
  id: string,
): Promise<SubscriptionRow> {
  return await transaction.subscription.findUniqueOrThrow({ where: { id }, select: SUBSCRIPTION_COLUMNS });
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
  return error ? { problems: toProblems(error, 'body') } : { fields: value };
}
