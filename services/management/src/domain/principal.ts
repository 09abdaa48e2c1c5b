import type { Deployment, Plan } from '@runhook/contract';
import type { License, PermissionSet } from '@runhook/database';

/** An account as far as access to it goes. */
export interface Account {
  id: number;
  /** `act_` and a KSUID. */
  identifier: string;
  plan: Plan;
  deployment: Deployment;
}

export interface Membership {
  account: Account;
  license: License;
  permissionSets: PermissionSet[];
}

/** Who calls: a user, who may belong to several accounts, or a token, which belongs to one. */
export type Principal =
  | { kind: 'user'; userId: number; memberships: Membership[] }
  | { kind: 'service_token'; tokenId: number; account: Account; permissionSets: PermissionSet[] };

export type UserPrincipal = Extract<Principal, { kind: 'user' }>;

/** What a caller proved itself with: a key in a header, or the console's cookie. Its permissions are the same. */
export type Credential =
  | { kind: 'key'; hash: Uint8Array }
  | { kind: 'session'; idHash: Uint8Array; expiresAt: Date; apiKeyHash: Uint8Array };

export interface Caller {
  principal: Principal;
  credential: Credential;
}

/** What a principal holds in one account: the row of the permission table that applies to it. */
export type Holder =
  | { kind: 'user'; license: License; permissionSets: readonly PermissionSet[] }
  | { kind: 'service_token'; permissionSets: readonly PermissionSet[] };

/** The account and what the principal holds there, or null when it has no part in it. */
export function scopeIn(
  principal: Principal,
  accountId: number,
): { account: Account; holder: Holder } | null {
  if (principal.kind === 'service_token') {
    const { account, permissionSets } = principal;
    return account.id === accountId ? { account, holder: { kind: 'service_token', permissionSets } } : null;
  }
  const membership = principal.memberships.find(({ account }) => account.id === accountId);
  if (!membership) return null;
  const { account, license, permissionSets } = membership;
  return { account, holder: { kind: 'user', license, permissionSets } };
}
