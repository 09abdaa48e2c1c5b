import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { inActorTransaction } from '../audit/actor.ts';

/** @param email in lower case. `passwordHash` is null when the user has no password. */
export async function findPasswordHash(
  prisma: PrismaClient,
  email: string,
): Promise<{ id: number; passwordHash: string | null } | null> {
  const user = await prisma.user.findUnique({ where: { email }, select: { id: true, passwordHash: true } });
  return user && { ...user, id: Number(user.id) };
}

export interface UserRecord {
  id: number;
  email: string;
  name: string;
  apiKeyCiphertext: string;
}

/** @param apiKeyHash if not null, the user is found only while the current API key has this hash */
export async function findUser(
  prisma: Prisma.TransactionClient,
  userId: number,
  apiKeyHash: Uint8Array<ArrayBuffer> | null,
): Promise<UserRecord | null> {
  const user = await prisma.user.findUnique({
    where: { id: BigInt(userId), ...(apiKeyHash && { apiKeyHash }) },
    select: { email: true, name: true, apiKeyCiphertext: true },
  });
  return user && { id: userId, ...user };
}

/**
 * Replaces the key if it is still the current one, and returns whether it did. Of concurrent calls, one succeeds.
 * @param beforeCommit an error that it throws rolls the change back
 */
export async function replaceApiKey(
  prisma: PrismaClient,
  key: {
    userId: number;
    currentHash: Uint8Array<ArrayBuffer>;
    newHash: Uint8Array<ArrayBuffer>;
    newCiphertext: string;
  },
  beforeCommit: () => void,
): Promise<boolean> {
  const { userId, currentHash, newHash, newCiphertext } = key;
  return await inActorTransaction(prisma, { kind: 'user', id: userId }, async (transaction) => {
    const { count } = await transaction.user.updateMany({
      where: { id: BigInt(userId), apiKeyHash: currentHash },
      data: { apiKeyHash: newHash, apiKeyCiphertext: newCiphertext, apiKeyCreatedAt: new Date() },
    });
    beforeCommit();
    return count > 0;
  });
}

/**
 * Sets the password and ends the user's console sessions, since someone who knew the old password may have opened one.
 * Returns null if the user does not exist. The API key does not change.
 */
export async function resetPassword(
  prisma: PrismaClient,
  userId: number,
  password: string,
): Promise<{ sessionsEnded: number } | null> {
  const id = BigInt(userId);
  const { hash } = await import('@node-rs/argon2');
  const passwordHash = await hash(password);
  return await inPrismaTransaction(prisma, async (transaction) => {
    const users = await transaction.user.updateMany({ where: { id }, data: { passwordHash } });
    if (users.count === 0) return null;
    // A separate statement after locking the user's row: its snapshot must include sessions committed concurrently.
    const sessions = await transaction.consoleSession.deleteMany({ where: { userId: id } });
    return { sessionsEnded: sessions.count };
  });
}
