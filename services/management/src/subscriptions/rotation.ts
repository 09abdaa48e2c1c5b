// SQL by hand: one secret takes the place of another within one statement, by the clock of the database.
import type { Prisma } from '@runhook/database/prisma';
import { answerObject, microsTime, requestObject, type Schema } from '../http/openapi/field-schemas.ts';

/** Body of `POST …/rotate-secret`. */
export interface RotationRequest {
  /** How long deliveries are signed with both secrets; 0: the new one takes over at once. */
  overlap_hours: number;
}

export const OVERLAP_HOURS = { max: 168, default: 24 } as const;

/** While deliveries are signed with two secrets (docs/contract.md#rotating-a-secret). */
export interface SecretRotation {
  started_at: string;
  /** When the new secret takes over. */
  ends_at: string;
}

/** Nothing from its end on, whenever the row is tidied up. */
export function rotationUnderWay(row: {
  rotationStartedAtMicros: bigint | null;
  rotationEndsAtMicros: bigint | null;
}): { secret_rotation?: SecretRotation } {
  const { rotationStartedAtMicros: startedAt, rotationEndsAtMicros: endsAt } = row;
  if (startedAt === null || endsAt === null || Number(endsAt) / 1000 <= Date.now()) return {};
  return { secret_rotation: { started_at: String(startedAt), ends_at: String(endsAt) } };
}

/** Of the OpenAPI document. */
export const ROTATION_SCHEMAS: Record<string, Schema> = {
  SecretRotation: answerObject<SecretRotation>(
    'A rotation of the secret that is under way: deliveries are signed with both. Absent otherwise.',
    {
      started_at: microsTime('When it began.'),
      ends_at: microsTime('When the new secret takes over, unless the rotation is finished before.'),
    },
  ),

  RotationRequest: requestObject<RotationRequest>(
    'How a secret is rotated.',
    {
      overlap_hours: {
        type: ['integer', 'null'],
        minimum: 0,
        maximum: OVERLAP_HOURS.max,
        default: OVERLAP_HOURS.default,
        description: `Hours for which deliveries are signed with both secrets: ${OVERLAP_HOURS.default} when left out or null. 0: the new one takes over at once.`,
      },
    },
    [],
  ),
};

// What has ended, and was not erased yet, has ended: the secret that took over is the one that the new one follows.
const BEGIN = `
  UPDATE subscriptions SET
    hmac_secret_ciphertext = CASE
      WHEN $4::int = 0 THEN $3
      WHEN rotation_ends_at <= now() THEN next_hmac_secret_ciphertext
      ELSE hmac_secret_ciphertext
    END,
    next_hmac_secret_ciphertext = CASE WHEN $4::int > 0 THEN $3 END,
    rotation_started_at = CASE WHEN $4::int > 0 THEN now() END,
    rotation_ends_at = CASE WHEN $4::int > 0 THEN now() + $4::int * interval '1 hour' END,
    secret_generation = secret_generation + 1
  WHERE id = $1 AND deleted_at IS NULL AND secret_generation = $2
    AND (rotation_ends_at IS NULL OR rotation_ends_at <= now())
  RETURNING id`;

export interface NewSecret {
  subscriptionId: string;
  /** Of the secret as it was when the rotation was asked for: of two at once, the second finds another. */
  generation: number;
  ciphertext: string;
  /** 0: it takes over at once. */
  overlapHours: number;
}

/** False when a rotation is under way, or began meanwhile. */
export async function beginRotation(
  transaction: Prisma.TransactionClient,
  { subscriptionId, generation, ciphertext, overlapHours }: NewSecret,
): Promise<boolean> {
  const values = [subscriptionId, generation, ciphertext, overlapHours];
  return (await transaction.$queryRawUnsafe<unknown[]>(BEGIN, ...values)).length > 0;
}

const FINISH = `
  UPDATE subscriptions SET
    hmac_secret_ciphertext = next_hmac_secret_ciphertext, next_hmac_secret_ciphertext = NULL,
    rotation_started_at = NULL, rotation_ends_at = NULL
  WHERE id = $1 AND deleted_at IS NULL AND rotation_ends_at > now()
  RETURNING id`;

/** False when no rotation is under way. */
export async function finishRotation(
  transaction: Prisma.TransactionClient,
  subscriptionId: string,
): Promise<boolean> {
  return (await transaction.$queryRawUnsafe<unknown[]>(FINISH, subscriptionId)).length > 0;
}
