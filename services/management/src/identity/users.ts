import { inPrismaTransaction, type PrismaClient } from '@runhook/database/prisma';
import { inTransactionOf } from '../audit/actor.ts';

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

/** @param apiKeyHash when given, the user is found only while this is still the key */
export async function findUser(
  prisma: PrismaClient,
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
 * Whether the key was still the current one and is the new one now. Of several at once, one succeeds.
 * @param beforeCommit what it throws leaves the current one
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
  return await inTransactionOf(prisma, { kind: 'user', id: userId }, async (transaction) => {
    const { count } = await transaction.user.updateMany({
      where: { id: BigInt(userId), apiKeyHash: currentHash },
      data: { apiKeyHash: newHash, apiKeyCiphertext: newCiphertext, apiKeyCreatedAt: new Date() },
    });
    beforeCommit();
    return count > 0;
  });
}

/**
 * Sets the password and ends the console sessions of the user: a password that is reset because it is known to others
 * must not leave them one. Null when there is no such user. The API key stays.
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
    // A statement of its own, after the user's row is ours: it must see a session that a sign-in committed meanwhile.
    const sessions = await transaction.consoleSession.deleteMany({ where: { userId: id } });
    return { sessionsEnded: sessions.count };
  });
}
