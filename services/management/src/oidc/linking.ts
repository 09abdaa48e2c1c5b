import type { PrismaClient } from '@runhook/database/prisma';

/** Operators' commands on identities at the provider. */

export interface LinkedIdentity {
  issuer: string;
  subject: string;
}

/** Time in which the API key of a linked user works before the first sign-in at the provider. */
const FIRST_SIGN_IN_MS = 24 * 3_600_000;

/** Returns null for a user who has no identity at the provider. */
export async function findIdentityOf(prisma: PrismaClient, userId: number): Promise<LinkedIdentity | null> {
  return await prisma.oidcIdentity.findUnique({
    where: { userId: BigInt(userId) },
    select: { issuer: true, subject: true },
  });
}

/**
 * Lets the user sign in at the provider instead of with a password. Triggers remove the password and end the sessions.
 * Throws Prisma's P2002 if the user or the subject is linked already.
 */
export async function linkIdentity(
  prisma: PrismaClient,
  userId: number,
  { issuer, subject }: LinkedIdentity,
): Promise<void> {
  const checkDueAt = new Date(Date.now() + FIRST_SIGN_IN_MS);
  await prisma.oidcIdentity.create({ data: { userId: BigInt(userId), issuer, subject, checkDueAt } });
}

/** Ends the sign-in at the provider and its sessions. Returns whether the user was linked. */
export async function unlinkIdentity(prisma: PrismaClient, userId: number): Promise<boolean> {
  const where = { userId: BigInt(userId) };
  const [{ count }] = await prisma.$transaction([
    prisma.oidcIdentity.deleteMany({ where }),
    prisma.consoleSession.deleteMany({ where }),
  ]);
  return count > 0;
}
