import { createHmacSecret } from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { actorOf, inActorTransaction } from '../audit/actor.ts';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError } from '../http/errors.ts';
import { parseBody } from '../http/parse-body.ts';
import { SUBSCRIPTION_COLUMNS, type SubscriptionRow, subscriptionView } from './fields.ts';
import { requireSubscription, SUBSCRIPTION_PATH } from './require-subscription.ts';
import {
  beginRotation,
  finishRotation,
  OVERLAP_HOURS,
  type RotationRequest,
  replaceKeyPair,
  replaceSecret,
} from './rotation.ts';
import { newSignatureKey } from './signature-key.ts';

const rotationInProgress = (what: string) =>
  `A rotation of the ${what} is under way, or has just begun: finish it before the next.`;
const SECRET_OR_KEY_PAIR = 'secret or the key pair';
const NO_KEY = 'The webhook has no key pair: set signature_key first.';
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
      const { id, secretGeneration, signaturePublicKey } = await requireSubscription(prisma, request);
      const { overlap_hours: overlapHours } = parseBody(schema, request.body);
      const hmacSecret = createHmacSecret();
      const replacement = replaceSecret(secretGeneration, secrets.encrypt(hmacSecret));
      return await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
        const hasBegun = await beginRotation(transaction, id, replacement, overlapHours);
        if (!hasBegun)
          throw new ConflictError(
            rotationInProgress(signaturePublicKey === null ? 'secret' : SECRET_OR_KEY_PAIR),
          );
        const row = await readSubscriptionRow(transaction, id);
        const data = { ...subscriptionView(row, request.account), hmac_secret: hmacSecret };
        return await request.recorder.recordWithPrisma(transaction, { code: 200, data });
      });
    },
  };
}

/** Adds a new key pair, or replaces the current one, as a rotation of the secret does. */
export function rotateSignatureKeyEndpoint(deps: {
  prisma: PrismaClient;
  secrets: SecretBox;
}): AccountEndpoint {
  const { prisma, secrets } = deps;
  return {
    method: 'POST',
    path: `${SUBSCRIPTION_PATH}/rotate-signature-key`,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const { id, signaturePublicKey, nextSignaturePublicKey } = await requireSubscription(prisma, request);
      const { overlap_hours: overlapHours } = parseBody(schema, request.body);
      const publicKey = nextSignaturePublicKey ?? signaturePublicKey;
      if (publicKey === null) throw new ConflictError(NO_KEY);
      const replacement = replaceKeyPair(publicKey, newSignatureKey(secrets));
      return await inActorTransaction(prisma, actorOf(request.principal), async (transaction) => {
        const hasBegun = await beginRotation(transaction, id, replacement, overlapHours);
        if (!hasBegun) throw new ConflictError(rotationInProgress(SECRET_OR_KEY_PAIR));
        const data = subscriptionView(await readSubscriptionRow(transaction, id), request.account);
        return await request.recorder.recordWithPrisma(transaction, { code: 200, data });
      });
    },
  };
}

/** Ends the overlap early and deletes the old secret or private key. */
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
