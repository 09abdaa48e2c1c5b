import { hash } from '@node-rs/argon2';
import { createId, type Deployment, type Plan } from '@runhook/contract';
import { createCredential, hashCredential } from './credentials.ts';
import type { PrismaClient } from './generated/client.ts';
import type { SecretBox } from './secret-box.ts';

export const PERMISSION_SETS = [
  'account_admin',
  'admin',
  'developer',
  'member',
  'read_only',
  'job_runner',
] as const;
export const LICENSES = ['developer', 'read_only', 'it'] as const;

export type PermissionSet = (typeof PERMISSION_SETS)[number];
export type License = (typeof LICENSES)[number];

export async function createAccount(
  prisma: PrismaClient,
  account: { name: string; plan: Plan; deployment: Deployment },
): Promise<{ id: number; identifier: string }> {
  const { id, identifier } = await prisma.account.create({
    data: { ...account, identifier: createId('account') },
  });
  return { id: Number(id), identifier };
}

/** The API key is answered here once; at rest it is a hash, and a ciphertext for the owner's profile page. */
export async function createUser(
  prisma: PrismaClient,
  secrets: SecretBox,
  user: { email: string; name: string; password: string },
): Promise<{ id: number; apiKey: string }> {
  const apiKey = createCredential('user');
  const { id } = await prisma.user.create({
    data: {
      email: user.email.toLowerCase(),
      name: user.name,
      passwordHash: await hash(user.password),
      apiKeyHash: hashCredential(apiKey),
      apiKeyCiphertext: secrets.encrypt(apiKey),
    },
  });
  return { id: Number(id), apiKey };
}

export async function addMembership(
  prisma: PrismaClient,
  membership: { accountId: number; userId: number; license: License; permissionSets: PermissionSet[] },
): Promise<void> {
  const { accountId, userId, license, permissionSets } = membership;
  await prisma.membership.create({
    data: { accountId: BigInt(accountId), userId: BigInt(userId), license, permissionSets },
  });
}

/** The token is answered here once; at rest it is a hash. */
export async function createServiceToken(
  prisma: PrismaClient,
  token: { accountId: number; name: string; permissionSets: PermissionSet[]; expiresAt?: Date },
): Promise<{ id: number; token: string }> {
  const credential = createCredential('service_token');
  const { id } = await prisma.serviceToken.create({
    data: {
      accountId: BigInt(token.accountId),
      name: token.name,
      tokenHash: hashCredential(credential),
      permissionSets: token.permissionSets,
      expiresAt: token.expiresAt ?? null,
    },
  });
  return { id: Number(id), token: credential };
}
