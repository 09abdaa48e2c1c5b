import { DEPLOYMENTS, type Deployment, PLANS, type Plan } from '@runhook/contract';
import { LICENSES, type License, type PermissionSet, permissionSetsOf, storedAs } from '@runhook/database';

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
  | { kind: 'key'; hash: Uint8Array<ArrayBuffer> }
  | {
      kind: 'session';
      idHash: Uint8Array<ArrayBuffer>;
      expiresAt: Date;
      apiKeyHash: Uint8Array<ArrayBuffer>;
    };

export interface Caller {
  principal: Principal;
  credential: Credential;
  /** As of which version of what is remembered the caller is known; null for a console session. */
  version: string | null;
}

/** Whoever holds a key, as of a version of what is remembered: any change of what is known of callers raises it. */
export interface KnownPrincipal {
  principal: Principal;
  version: string;
  /** How long the key holds at most; null for ever. */
  validMs: number | null;
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

/** What can be asked of an account. Reading needs nothing but a membership or a token of it. */
export type Action = 'read' | 'read_audit' | 'write_webhooks' | 'report_runs';

type Requirement = { licence: 'developer' } | { anyOf: readonly PermissionSet[] };

/**
 * Who may write webhooks (docs/contract.md#identity). On Enterprise the licence does not matter; on Team no permission set
 * replaces the licence. Other plans have no webhooks, so no row.
 */
const WRITE_WEBHOOKS: Record<'enterprise' | 'team', Record<Holder['kind'], Requirement>> = {
  enterprise: {
    user: { anyOf: ['account_admin', 'admin', 'developer'] },
    service_token: { anyOf: ['account_admin', 'admin', 'developer'] },
  },
  team: {
    user: { licence: 'developer' },
    service_token: { anyOf: ['account_admin', 'member'] },
  },
};

/** Who may create jobs and report runs, on every plan (docs/contract.md#identity). */
const REPORT_RUNS: Requirement = { anyOf: ['job_runner', 'account_admin', 'admin'] };

/** Who may read who did what, and whence people sign in, on every plan. */
const READ_AUDIT: Requirement = { anyOf: ['account_admin', 'admin'] };

/** What the action needs and the holder lacks, as a phrase that says what would suffice; null when it is permitted. */
export function missingPermission(action: Action, plan: Plan, holder: Holder): string | null {
  const requirement = requirementOf(action, plan, holder.kind);
  if (requirement === 'nothing') return null;
  if (requirement === 'unavailable') return 'the Team or Enterprise plan';
  return meets(requirement, holder) ? null : phrase(requirement);
}

function requirementOf(
  action: Action,
  plan: Plan,
  kind: Holder['kind'],
): Requirement | 'nothing' | 'unavailable' {
  if (action === 'read') return 'nothing';
  if (action === 'read_audit') return READ_AUDIT;
  if (action === 'report_runs') return REPORT_RUNS;
  return plan === 'enterprise' || plan === 'team' ? WRITE_WEBHOOKS[plan][kind] : 'unavailable';
}

function meets(requirement: Requirement, holder: Holder): boolean {
  if ('licence' in requirement) return holder.kind === 'user' && holder.license === requirement.licence;
  return requirement.anyOf.some((permissionSet) => holder.permissionSets.includes(permissionSet));
}

function phrase(requirement: Requirement): string {
  if ('licence' in requirement) return 'the Developer license';
  const { anyOf } = requirement;
  return `the permission set ${anyOf.slice(0, -1).join(', ')} or ${anyOf.at(-1)}`;
}

/** Of a membership, what {@link userPrincipal} needs. */
export interface MembershipRow {
  license: string;
  permissionSets: readonly string[];
  account: AccountRow;
}

interface AccountRow {
  id: bigint | string;
  identifier: string;
  plan: string;
  deployment: string;
}

/** @param memberships in the order of their accounts */
export function userPrincipal(userId: bigint | string, memberships: readonly MembershipRow[]): UserPrincipal {
  return {
    kind: 'user',
    userId: Number(userId),
    memberships: memberships.map((membership) => ({
      account: accountOf(membership.account),
      license: storedAs(LICENSES, membership.license),
      permissionSets: permissionSetsOf(membership),
    })),
  };
}

export function accountOf({ id, identifier, plan, deployment }: AccountRow): Account {
  return {
    id: Number(id),
    identifier,
    plan: storedAs(PLANS, plan),
    deployment: storedAs(DEPLOYMENTS, deployment),
  };
}
