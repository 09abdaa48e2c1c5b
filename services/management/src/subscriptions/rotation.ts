// SQL by hand: the transaction's timestamp, which Prisma Client cannot select.
import type { Prisma } from '@runhook/database/prisma';
import { microsTime, requestObject, responseObject, type Schema } from '../http/openapi/field-schemas.ts';

/** Body of `POST …/rotate-secret`. */
export interface RotationRequest {
  /** Hours for which deliveries are signed with both secrets or keys; 0 replaces the old one at once. */
  overlap_hours: number;
}

export const OVERLAP_HOURS = { max: 168, default: 24 } as const;

/** A rotation during which deliveries are signed with two secrets or keys (docs/contract.md#rotating-a-secret). */
export interface SecretRotation {
  started_at: string;
  /** Time when the new secret or key replaces the old one. */
  ends_at: string;
}

/** Returns the rotation of the secret or of the key pair; null after its end, even if the row still has it. */
export function rotationPeriod(row: {
  rotationStartedAtMicros: bigint | null;
  rotationEndsAtMicros: bigint | null;
}): SecretRotation | null {
  const { rotationStartedAtMicros: startedAt, rotationEndsAtMicros: endsAt } = row;
  if (startedAt === null || endsAt === null || Number(endsAt) / 1000 <= Date.now()) return null;
  return { started_at: String(startedAt), ends_at: String(endsAt) };
}

/** Schemas of the OpenAPI document. */
export const ROTATION_SCHEMAS: Record<string, Schema> = {
  SecretRotation: responseObject<SecretRotation>(
    'The rotation in progress: deliveries are signed with both secrets, or both keys. Absent otherwise.',
    {
      started_at: microsTime('When it began.'),
      ends_at: microsTime('When the new one takes over, unless the rotation is finished before.'),
    },
  ),

  RotationRequest: requestObject<RotationRequest>(
    'The request to rotate a secret or a key pair.',
    {
      overlap_hours: {
        type: ['integer', 'null'],
        minimum: 0,
        maximum: OVERLAP_HOURS.max,
        default: OVERLAP_HOURS.default,
        description: `Hours for which deliveries are signed with both secrets or keys. Default (also null): ${OVERLAP_HOURS.default}. 0: the new one is used at once.`,
      },
    },
    [],
  ),
};

const ROTATION_COLUMNS = {
  secretGeneration: true,
  nextHmacSecretCiphertext: true,
  signaturePublicKey: true,
  nextSignatureKeyCiphertext: true,
  nextSignaturePublicKey: true,
  rotationEndsAt: true,
} satisfies Prisma.SubscriptionSelect;

type RotationRow = Prisma.SubscriptionGetPayload<{ select: typeof ROTATION_COLUMNS }>;

/** A new secret or key pair. */
interface Replacement {
  /** Whether the row has what the request read; of two concurrent rotations, the second one fails. */
  isUnchanged(row: RotationRow): boolean;
  /** Columns with an overlap. */
  next: Prisma.SubscriptionUpdateManyMutationInput;
  /** Columns without an overlap. */
  immediate: Prisma.SubscriptionUpdateManyMutationInput;
}

/** @param generation of the secret when the rotation was requested */
export function replaceSecret(generation: number, ciphertext: string): Replacement {
  const secretGeneration = { increment: 1 };
  return {
    isUnchanged: (row) => row.secretGeneration === generation,
    next: { nextHmacSecretCiphertext: ciphertext, secretGeneration },
    immediate: { hmacSecretCiphertext: ciphertext, secretGeneration },
  };
}

/** @param oldPublicKey when the rotation was requested */
export function replaceKeyPair(
  oldPublicKey: string,
  { ciphertext, publicKey }: { ciphertext: string; publicKey: string },
): Replacement {
  return {
    isUnchanged: (row) => (row.nextSignaturePublicKey ?? row.signaturePublicKey) === oldPublicKey,
    next: { nextSignatureKeyCiphertext: ciphertext, nextSignaturePublicKey: publicKey },
    immediate: { signatureKeyCiphertext: ciphertext, signaturePublicKey: publicKey },
  };
}

/**
 * Returns false when a rotation is in progress, or began after the request read the row. If the conditional update
 * matches no row, the loop reads the row again; only a re-encryption makes it update again.
 * @param overlapHours 0 replaces the secret or the key pair at once
 */
export async function beginRotation(
  transaction: Prisma.TransactionClient,
  subscriptionId: string,
  replacement: Replacement,
  overlapHours: number,
): Promise<boolean> {
  const now = await databaseNow(transaction);
  const rotationEndsAt = new Date(now.getTime() + overlapHours * HOUR_MS);
  for (;;) {
    const row = await findRotation(transaction, subscriptionId);
    if (!row || !replacement.isUnchanged(row)) return false;
    if (row.rotationEndsAt !== null && row.rotationEndsAt > now) return false;
    // A rotation that has ended may not be cleared yet: what it introduced is replaced.
    const { count } = await transaction.subscription.updateMany({
      where: unchanged(subscriptionId, row),
      data: {
        ...endedRotation(row),
        ...(overlapHours === 0
          ? replacement.immediate
          : { ...replacement.next, rotationStartedAt: now, rotationEndsAt }),
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
    if (!row || row.rotationEndsAt === null || row.rotationEndsAt <= now) return false;
    const { count } = await transaction.subscription.updateMany({
      where: unchanged(subscriptionId, row),
      data: endedRotation(row),
    });
    if (count > 0) return true;
  }
}

/** Returns the columns after the end of a rotation. */
function endedRotation(row: RotationRow): Prisma.SubscriptionUpdateManyMutationInput {
  const { nextHmacSecretCiphertext, nextSignatureKeyCiphertext, nextSignaturePublicKey } = row;
  return {
    ...(nextHmacSecretCiphertext !== null && {
      hmacSecretCiphertext: nextHmacSecretCiphertext,
      nextHmacSecretCiphertext: null,
    }),
    ...(nextSignatureKeyCiphertext !== null && {
      signatureKeyCiphertext: nextSignatureKeyCiphertext,
      signaturePublicKey: nextSignaturePublicKey,
      nextSignatureKeyCiphertext: null,
      nextSignaturePublicKey: null,
    }),
    rotationStartedAt: null,
    rotationEndsAt: null,
  };
}

function unchanged(id: string, row: RotationRow): Prisma.SubscriptionWhereInput {
  const { secretGeneration, nextHmacSecretCiphertext, signaturePublicKey, nextSignatureKeyCiphertext } = row;
  return {
    ...{ id, deletedAt: null, secretGeneration },
    ...{ nextHmacSecretCiphertext, signaturePublicKey, nextSignatureKeyCiphertext },
  };
}

const HOUR_MS = 3_600_000;

async function findRotation(transaction: Prisma.TransactionClient, id: string) {
  return await transaction.subscription.findFirst({
    where: { id, deletedAt: null },
    select: ROTATION_COLUMNS,
  });
}

async function databaseNow(transaction: Prisma.TransactionClient): Promise<Date> {
  const [row] = await transaction.$queryRaw<{ now: Date }[]>`SELECT now()`;
  if (!row) throw new Error('PostgreSQL returned no timestamp.');
  return row.now;
}
