import { secondsTimestamp } from '@runhook/contract';
import type { License, PermissionSet } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { CallerEndpoint } from '../http/endpoint.ts';
import { InvalidTokenError } from '../http/errors.ts';
import { QueryReader } from '../http/query-parameters.ts';
import type { Principal } from './principals.ts';

/** Permissions of the caller in one account, as clients of this API family read them. */
export interface CallerPermission {
  account_id: number;
  license_type: License | null;
  permission_sets: PermissionSet[];
  groups: string[];
}

/** The caller, a user or a service token: the other one is null. Contains no secret. */
export interface WhoAmI {
  user: {
    id: number;
    email: string;
    name: string;
    first_name: string;
    last_name: string;
    permissions: CallerPermission[];
  } | null;
  service_token: {
    id: number;
    name: string;
    account_id: number;
    expires_at: string | null;
    permissions: CallerPermission[];
  } | null;
}

/** Returns who calls, with which permissions (docs/contract.md#identity). */
export function whoAmIEndpoints({ prisma }: { prisma: PrismaClient }): CallerEndpoint[] {
  const handle: CallerEndpoint['handle'] = async ({ principal, query }) => {
    new QueryReader(query).check();
    const data: WhoAmI =
      principal.kind === 'user'
        ? { user: await userOf(prisma, principal), service_token: null }
        : { user: null, service_token: await tokenOf(prisma, principal) };
    return { code: 200, data };
  };
  return (['/api/v2/whoami', '/api/v3/whoami'] as const).map((path) => ({
    method: 'GET',
    path,
    access: 'caller',
    handle,
  }));
}

/** Throws a 401 for a user who was deleted after the authentication. */
async function userOf(
  prisma: PrismaClient,
  { userId, memberships }: Extract<Principal, { kind: 'user' }>,
): Promise<NonNullable<WhoAmI['user']>> {
  const user = await prisma.user.findUnique({
    where: { id: BigInt(userId) },
    select: { email: true, name: true },
  });
  if (user === null) throw new InvalidTokenError();
  const [firstName = '', ...lastNames] = user.name.split(' ');
  return {
    id: userId,
    ...user,
    first_name: firstName,
    last_name: lastNames.join(' '),
    permissions: memberships.map(({ account, license, permissionSets }) => ({
      account_id: account.id,
      license_type: license,
      permission_sets: permissionSets,
      groups: [],
    })),
  };
}

async function tokenOf(
  prisma: PrismaClient,
  { tokenId, account, permissionSets }: Extract<Principal, { kind: 'service_token' }>,
): Promise<NonNullable<WhoAmI['service_token']>> {
  const token = await prisma.serviceToken.findUnique({
    where: { id: BigInt(tokenId), accountId: BigInt(account.id) },
    select: { name: true, expiresAt: true },
  });
  if (token === null) throw new InvalidTokenError();
  return {
    id: tokenId,
    name: token.name,
    account_id: account.id,
    expires_at: token.expiresAt && secondsTimestamp(token.expiresAt),
    permissions: [
      { account_id: account.id, license_type: null, permission_sets: permissionSets, groups: [] },
    ],
  };
}
