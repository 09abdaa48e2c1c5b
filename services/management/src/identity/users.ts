import { codePointLength } from '@runhook/contract';
import { createCredential, hashCredential, type SecretBox } from '@runhook/database';
import { inPrismaTransaction, type PrismaClient } from '@runhook/database/prisma';
import { inActorTransaction } from '../audit/actor.ts';

/** Limits in code points; the maximum is below that of a sign-in. */
export const PASSWORD_LIMITS = { charactersMin: 8, charactersMax: 1_000 } as const;

/** Returns the problem of a new password as a phrase that follows its name; null if it may be used. */
export function passwordProblem(password: string): string | null {
  const { charactersMin, charactersMax } = PASSWORD_LIMITS;
  const characters = codePointLength(password);
  if (characters < charactersMin || characters > charactersMax)
    return `must have ${charactersMin} to ${charactersMax} characters`;
  return /\p{Cc}/u.test(password) ? 'must be one line without control characters' : null;
}

/** Returns the hash of a new password, by Argon2id. */
export async function hashPassword(password: string): Promise<string> {
  const { hash } = await import('@node-rs/argon2');
  return await hash(password);
}

/** @param email in lower case. `passwordHash` is null when the user has no password. */
export async function findPasswordHash(
  prisma: PrismaClient,
  email: string,
): Promise<{ id: number; passwordHash: string | null } | null> {
  const user = await prisma.user.findUnique({ where: { email }, select: { id: true, passwordHash: true } });
  return user && { ...user, id: Number(user.id) };
}

/** `passwordHash` is null when the user has no password. Returns null if the user does not exist. */
export async function findPasswordHashById(
  prisma: PrismaClient,
  userId: number,
): Promise<{ email: string; passwordHash: string | null } | null> {
  return await prisma.user.findUnique({
    where: { id: BigInt(userId) },
    select: { email: true, passwordHash: true },
  });
}

export interface UserRecord {
  id: number;
  email: string;
  name: string;
  apiKeyCiphertext: string;
}

/** @param apiKeyHash if not null, the user is found only while the current API key has this hash */
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
 * Makes the API key invalid: a new one replaces it, which only the user can see. Returns whether the user exists.
 * The key is rejected everywhere from the commit on.
 */
export async function revokeApiKey(
  prisma: PrismaClient,
  secrets: SecretBox,
  userId: number,
): Promise<boolean> {
  const apiKey = createCredential('user');
  const { count } = await prisma.user.updateMany({
    where: { id: BigInt(userId) },
    data: {
      apiKeyHash: hashCredential(apiKey),
      apiKeyCiphertext: secrets.encrypt(apiKey),
      apiKeyCreatedAt: new Date(),
    },
  });
  return count > 0;
}

/**
 * Deletes the user with its memberships, sessions, password and API key, and returns how many memberships and sessions
 * there were; null if the user does not exist. Webhooks belong to accounts and stay, and so do audit entries, which
 * have the e-mail address. A user who is removed is rejected everywhere from the commit on.
 */
export async function removeUser(
  prisma: PrismaClient,
  userId: number,
): Promise<{ memberships: number; sessions: number } | null> {
  const id = BigInt(userId);
  return await inPrismaTransaction(prisma, async (transaction) => {
    const counts = await transaction.user.findUnique({
      where: { id },
      select: { _count: { select: { memberships: true, consoleSessions: true } } },
    });
    const { count } = await transaction.user.deleteMany({ where: { id } });
    if (counts === null || count === 0) return null;
    const { memberships, consoleSessions } = counts._count;
    return { memberships, sessions: consoleSessions };
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
  const passwordHash = await hashPassword(password);
  return await inPrismaTransaction(prisma, async (transaction) => {
    const users = await transaction.user.updateMany({ where: { id }, data: { passwordHash } });
    if (users.count === 0) return null;
    // A separate statement after locking the user's row: its snapshot must include sessions committed concurrently.
    const sessions = await transaction.consoleSession.deleteMany({ where: { userId: id } });
    return { sessionsEnded: sessions.count };
  });
}
