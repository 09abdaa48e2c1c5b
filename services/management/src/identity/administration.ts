import type { Deployment, Plan } from '@runhook/contract';
import { LICENSES, type License, type PermissionSet, parseStored, permissionSetsOf } from '@runhook/database';
import { containsText, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { type AccountView, accountView } from './accounts.ts';

// Operators' commands on accounts, users, memberships and service tokens (docs/administration.md).

/** Identifies an account in an operator's command. */
export type AccountReference = { id: number } | { identifier: string };

export async function findAccount(
  prisma: PrismaClient,
  reference: AccountReference,
): Promise<AccountView | null> {
  const where = 'id' in reference ? { id: BigInt(reference.id) } : reference;
  const account = await prisma.account.findUnique({ where });
  return account && accountView(account);
}

/** Returns accounts, oldest first. @param filter `name` matches a part of the name, ignoring case */
export async function listAccounts(
  prisma: PrismaClient,
  { name, plan, deployment }: { name?: string; plan?: Plan; deployment?: Deployment },
): Promise<AccountView[]> {
  const accounts = await prisma.account.findMany({
    where: {
      ...(name !== undefined && { name: containsText(name) }),
      ...(plan !== undefined && { plan }),
      ...(deployment !== undefined && { deployment }),
    },
    orderBy: { id: 'asc' },
  });
  return accounts.map(accountView);
}

/** Leaves omitted fields unchanged. Returns null if the account does not exist. */
export async function updateAccount(
  prisma: PrismaClient,
  id: number,
  changes: { name?: string; plan?: Plan; deployment?: Deployment },
): Promise<AccountView | null> {
  const [account] = await prisma.account.updateManyAndReturn({ where: { id: BigInt(id) }, data: changes });
  return account ? accountView(account) : null;
}

export interface UserMembershipView {
  account_id: number;
  license: License;
  permission_sets: PermissionSet[];
}

export interface UserView {
  id: number;
  email: string;
  name: string;
  memberships: UserMembershipView[];
}

/** Identifies a user in an operator's command. E-mail addresses are stored in lower case. */
export type UserReference = { id: number } | { email: string };

const USER_FIELDS = { id: true, email: true, name: true } satisfies Prisma.UserSelect;

export async function findUser(
  prisma: PrismaClient,
  reference: UserReference,
): Promise<{ id: number; email: string; name: string } | null> {
  const where = 'id' in reference ? { id: BigInt(reference.id) } : reference;
  const user = await prisma.user.findUnique({ where, select: USER_FIELDS });
  return user && { ...user, id: Number(user.id) };
}

/** Returns users with their memberships, oldest first. @param filter `email` and `name` match parts, ignoring case */
export async function listUsers(
  prisma: PrismaClient,
  { email, name, accountId }: { email?: string; name?: string; accountId?: number },
): Promise<UserView[]> {
  const users = await prisma.user.findMany({
    where: {
      ...(email !== undefined && { email: containsText(email) }),
      ...(name !== undefined && { name: containsText(name) }),
      ...(accountId !== undefined && { memberships: { some: { accountId: BigInt(accountId) } } }),
    },
    select: { ...USER_FIELDS, memberships: { orderBy: { accountId: 'asc' } } },
    orderBy: { id: 'asc' },
  });
  return users.map(({ id, email, name, memberships }) => ({
    id: Number(id),
    email,
    name,
    memberships: memberships.map((membership) => ({
      account_id: Number(membership.accountId),
      ...permissionsView(membership),
    })),
  }));
}

export interface MembershipView extends UserMembershipView {
  user_id: number;
}

export interface MembershipKey {
  accountId: number;
  userId: number;
}

/** Default licence of a new member: the one with the fewest permissions. */
export const LICENSE_DEFAULT = 'read_only' satisfies License;

/**
 * Makes the user a member, or changes the licence or permission sets of a member. Omitted fields stay unchanged; a new
 * member gets {@link LICENSE_DEFAULT} and no permission set. Each step is one conditional statement, so concurrent
 * calls and removals lead to one of their results.
 */
export async function putMembership(
  prisma: PrismaClient,
  { accountId, userId }: MembershipKey,
  fields: { license?: License; permissionSets?: PermissionSet[] },
): Promise<MembershipView & { is_new: boolean }> {
  const key = { accountId: BigInt(accountId), userId: BigInt(userId) };
  const newMembership = { ...key, license: LICENSE_DEFAULT, permissionSets: [], ...fields };
  while (true) {
    const [isNew] = await prisma.membership.createManyAndReturn({
      data: newMembership,
      skipDuplicates: true,
    });
    const [row] = isNew ? [isNew] : await prisma.membership.updateManyAndReturn({ where: key, data: fields });
    if (row)
      return { account_id: accountId, user_id: userId, ...permissionsView(row), is_new: isNew !== undefined };
  }
}

function permissionsView(membership: Prisma.MembershipModel) {
  return {
    license: parseStored(LICENSES, membership.license),
    permission_sets: permissionSetsOf(membership),
  };
}

/** Returns whether the membership existed. */
export async function removeMembership(
  prisma: PrismaClient,
  { accountId, userId }: MembershipKey,
): Promise<boolean> {
  const { count } = await prisma.membership.deleteMany({
    where: { accountId: BigInt(accountId), userId: BigInt(userId) },
  });
  return count > 0;
}

/** A service token without its secret. Times are ISO 8601 UTC. */
export interface ServiceTokenView {
  id: number;
  account_id: number;
  name: string;
  permission_sets: PermissionSet[];
  created_at: string;
  /** Null if the token does not expire. */
  expires_at: string | null;
  /** Up to about a minute late; null if the token was never used. */
  last_used_at: string | null;
  revoked_at: string | null;
}

const TOKEN_FIELDS = {
  id: true,
  accountId: true,
  name: true,
  permissionSets: true,
  createdAt: true,
  expiresAt: true,
  lastUsedAt: true,
  revokedAt: true,
} satisfies Prisma.ServiceTokenSelect;

export async function findServiceToken(prisma: PrismaClient, id: number): Promise<ServiceTokenView | null> {
  const token = await prisma.serviceToken.findUnique({ where: { id: BigInt(id) }, select: TOKEN_FIELDS });
  return token && tokenView(token);
}

/** Returns tokens, oldest first. @param filter `name` matches a part; `permissionSets` matches any of them */
export async function listServiceTokens(
  prisma: PrismaClient,
  {
    accountId,
    name,
    permissionSets,
  }: { accountId?: number; name?: string; permissionSets?: PermissionSet[] },
): Promise<ServiceTokenView[]> {
  const tokens = await prisma.serviceToken.findMany({
    where: {
      ...(accountId !== undefined && { accountId: BigInt(accountId) }),
      ...(name !== undefined && { name: containsText(name) }),
      ...(permissionSets !== undefined && { permissionSets: { hasSome: permissionSets } }),
    },
    select: TOKEN_FIELDS,
    orderBy: { id: 'asc' },
  });
  return tokens.map(tokenView);
}

/**
 * Revokes a token: it is rejected as soon as this returns. A token that was revoked before keeps the earlier time, and
 * `wasAlreadyRevoked` is true. Returns null if the token does not exist.
 */
export async function revokeServiceToken(
  prisma: PrismaClient,
  id: number,
): Promise<{ token: ServiceTokenView; wasAlreadyRevoked: boolean } | null> {
  const { count } = await prisma.serviceToken.updateMany({
    where: { id: BigInt(id), revokedAt: null },
    data: { revokedAt: new Date() },
  });
  const token = await findServiceToken(prisma, id);
  return token && { token, wasAlreadyRevoked: count === 0 };
}

function tokenView(row: Prisma.ServiceTokenGetPayload<{ select: typeof TOKEN_FIELDS }>): ServiceTokenView {
  return {
    id: Number(row.id),
    account_id: Number(row.accountId),
    name: row.name,
    permission_sets: permissionSetsOf(row),
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt?.toISOString() ?? null,
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
  };
}
