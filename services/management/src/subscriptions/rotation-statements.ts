// SQL by hand: one secret takes the place of another within one statement, by the clock of the database.
import type { Prisma } from '@runhook/database/prisma';

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
