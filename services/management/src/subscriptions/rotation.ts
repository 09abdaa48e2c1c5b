// SQL by hand: the transaction's timestamp, which Prisma Client cannot select.
import type { Prisma } from '@runhook/database/prisma';
import { microsTime, requestObject, responseObject, type Schema } from '../http/openapi/field-schemas.ts';

/** Body of `POST …/rotate-secret`. */
export interface RotationRequest {
  /** Hours for which deliveries are signed with both secrets; 0 replaces the secret at once. */
  overlap_hours: number;
}

export const OVERLAP_HOURS = { max: 168, default: 24 } as const;

/** A rotation during which deliveries are signed with two secrets (docs/contract.md#rotating-a-secret). */
export interface SecretRotation {
  started_at: string;
  /** Time when the new secret replaces the old one. */
  ends_at: string;
}

/** Returns no rotation after its end, even if the row still has it. */
export function currentRotation(row: {
  rotationStartedAtMicros: bigint | null;
  rotationEndsAtMicros: bigint | null;
}): { secret_rotation?: SecretRotation } {
  const { rotationStartedAtMicros: startedAt, rotationEndsAtMicros: endsAt } = row;
  if (startedAt === null || endsAt === null || Number(endsAt) / 1000 <= Date.now()) return {};
  return { secret_rotation: { started_at: String(startedAt), ends_at: String(endsAt) } };
}

/** Schemas of the OpenAPI document. */
export const ROTATION_SCHEMAS: Record<string, Schema> = {
  SecretRotation: responseObject<SecretRotation>(
    'The rotation of the secret in progress: deliveries are signed with both secrets. Absent otherwise.',
    {
      started_at: microsTime('When it began.'),
      ends_at: microsTime('When the new secret takes over, unless the rotation is finished before.'),
    },
  ),

  RotationRequest: requestObject<RotationRequest>(
    'The request to rotate a secret.',
    {
      overlap_hours: {
        type: ['integer', 'null'],
        minimum: 0,
        maximum: OVERLAP_HOURS.max,
        default: OVERLAP_HOURS.default,
        description: `Hours for which deliveries are signed with both secrets. Default (also null): ${OVERLAP_HOURS.default}. 0: the new secret is used at once.`,
      },
    },
    [],
  ),
};

export interface NewSecret {
  subscriptionId: string;
  /** Generation of the secret when the rotation was requested; of two concurrent rotations, the second one fails. */
  generation: number;
  ciphertext: string;
  /** 0 replaces the secret at once. */
  overlapHours: number;
}

/**
 * Returns false when a rotation is in progress, or began after `generation` was read. If the conditional update matches
 * no row, the loop reads the row again; only a re-encryption of the stored secret makes it update again.
 */
export async function beginRotation(
  transaction: Prisma.TransactionClient,
  { subscriptionId, generation, ciphertext, overlapHours }: NewSecret,
): Promise<boolean> {
  const now = await databaseNow(transaction);
  const immediate: Prisma.SubscriptionUpdateManyMutationInput = {
    hmacSecretCiphertext: ciphertext,
    ...NO_ROTATION,
  };
  const overlapping: Prisma.SubscriptionUpdateManyMutationInput = {
    nextHmacSecretCiphertext: ciphertext,
    rotationStartedAt: now,
    rotationEndsAt: new Date(now.getTime() + overlapHours * HOUR_MS),
  };
  for (;;) {
    const row = await findRotation(transaction, subscriptionId);
    if (!row || row.secretGeneration !== generation) return false;
    const { nextHmacSecretCiphertext: next, rotationEndsAt: endsAt } = row;
    if (endsAt !== null && endsAt > now) return false;
    // A rotation that has ended but is not cleared yet: its new secret is the one to replace.
    const replacedSecret = next === null ? {} : { hmacSecretCiphertext: next };
    const { count } = await transaction.subscription.updateMany({
      where: {
        id: subscriptionId,
        deletedAt: null,
        secretGeneration: generation,
        nextHmacSecretCiphertext: next,
      },
      data: {
        ...(overlapHours === 0 ? immediate : { ...replacedSecret, ...overlapping }),
        secretGeneration: { increment: 1 },
      },
    });
    if (count > 0) return true;
  }
}

/** Returns false when no rotation is in progress. Repeats as {@link beginRotation} does. */
export async function finishRotation(
  transaction: Prisma.TransactionClient,
  subscriptionId: string,
): Promise<boolean> {
  const now = await databaseNow(transaction);
  for (;;) {
    const row = await findRotation(transaction, subscriptionId);
    if (!row || row.nextHmacSecretCiphertext === null) return false;
    if (row.rotationEndsAt === null || row.rotationEndsAt <= now) return false;
    const { secretGeneration, nextHmacSecretCiphertext } = row;
    const { count } = await transaction.subscription.updateMany({
      where: { id: subscriptionId, deletedAt: null, secretGeneration, nextHmacSecretCiphertext },
      data: { hmacSecretCiphertext: nextHmacSecretCiphertext, ...NO_ROTATION },
    });
    if (count > 0) return true;
  }
}

const HOUR_MS = 3_600_000;
const NO_ROTATION = { nextHmacSecretCiphertext: null, rotationStartedAt: null, rotationEndsAt: null };

async function findRotation(transaction: Prisma.TransactionClient, id: string) {
  return await transaction.subscription.findFirst({
    where: { id, deletedAt: null },
    select: { secretGeneration: true, nextHmacSecretCiphertext: true, rotationEndsAt: true },
  });
}

async function databaseNow(transaction: Prisma.TransactionClient): Promise<Date> {
  const [row] = await transaction.$queryRaw<{ now: Date }[]>`SELECT now()`;
  if (!row) throw new Error('PostgreSQL returned no timestamp.');
  return row.now;
}
