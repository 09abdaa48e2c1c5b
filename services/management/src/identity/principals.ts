import { DEPLOYMENTS, type Deployment, PLANS, type Plan } from '@runhook/contract';
import { LICENSES, type License, type PermissionSet, parseStored, permissionSetsOf } from '@runhook/database';

/** The fields of an account that determine access to it. */
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

/** The caller: a user, who may belong to several accounts, or a service token, which belongs to one. */
export type Principal =
  | { kind: 'user'; userId: number; memberships: Membership[] }
  | { kind: 'service_token'; tokenId: number; account: Account; permissionSets: PermissionSet[] };

export type UserPrincipal = Extract<Principal, { kind: 'user' }>;

/** Proof of the caller's identity: a key in a header, or the console's cookie. Both grant the same permissions. */
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
  /** Value of `cache_version` at which the caller was read; null for a console session, which is never cached. */
  version: string | null;
}

/** The principal of a key at a value of `cache_version`, which every change of a caller's permissions raises. */
export interface VersionedPrincipal {
  principal: Principal;
  version: string;
  /**
   * Milliseconds until a token expires, or until the access of a user of the identity provider must be checked there
   * (negative if it must be checked now); null without a limit.
   */
  validMs: number | null;
}

/** The role of a principal in one account: it selects the row of the permission table. */
export type Holder =
  | { kind: 'user'; license: License; permissionSets: readonly PermissionSet[] }
  | { kind: 'service_token'; permissionSets: readonly PermissionSet[] };

/** Returns the account and the principal's role in it, or null if the principal has none. */
export function findScope(
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

/** Actions on an account. `read` needs only a membership or a token of the account. */
export type Action =
  | 'read'
  | 'read_audit'
  | 'read_tokens'
  | 'write_webhooks'
  | 'report_runs'
  | 'trigger_runs';

type Requirement = { licence: 'developer' } | { anyOf: readonly PermissionSet[] };

/**
 * Requirements for writing webhooks (docs/contract.md#identity). On Enterprise the licence does not matter; on Team no
 * permission set replaces a user's licence. Other plans have no webhooks and therefore no row.
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

/** Requirement for creating jobs and reporting runs, on every plan (docs/contract.md#identity). */
const REPORT_RUNS: Requirement = { anyOf: ['job_runner', 'account_admin', 'admin'] };

/** Requirement for triggering, cancelling and retrying runs, on every plan. */
const TRIGGER_RUNS: Requirement = { anyOf: ['job_runner', 'account_admin', 'admin', 'developer'] };

/** Requirement for the audit log, which includes the addresses of sign-ins, and the list of tokens, on every plan. */
const ADMINISTRATION: Requirement = { anyOf: ['account_admin', 'admin'] };

/** Returns the missing permission as a phrase that names what would suffice, or null if the action is permitted. */
export function missingPermission(action: Action, plan: Plan, holder: Holder): string | null {
  const requirement = requirementOf(action, plan, holder.kind);
  if (requirement === 'nothing') return null;
  if (requirement === 'unavailable') return 'the Team or Enterprise plan';
  return isMet(requirement, holder) ? null : requirementText(requirement);
}

function requirementOf(
  action: Action,
  plan: Plan,
  kind: Holder['kind'],
): Requirement | 'nothing' | 'unavailable' {
  if (action === 'read') return 'nothing';
  if (action === 'read_audit' || action === 'read_tokens') return ADMINISTRATION;
  if (action === 'report_runs') return REPORT_RUNS;
  if (action === 'trigger_runs') return TRIGGER_RUNS;
  return plan === 'enterprise' || plan === 'team' ? WRITE_WEBHOOKS[plan][kind] : 'unavailable';
}

function isMet(requirement: Requirement, holder: Holder): boolean {
  if ('licence' in requirement) return holder.kind === 'user' && holder.license === requirement.licence;
  return requirement.anyOf.some((permissionSet) => holder.permissionSets.includes(permissionSet));
}

function requirementText(requirement: Requirement): string {
  if ('licence' in requirement) return 'the Developer license';
  const { anyOf } = requirement;
  return `the permission set ${anyOf.slice(0, -1).join(', ')} or ${anyOf.at(-1)}`;
}

/** Fields of a membership that {@link userPrincipal} needs. */
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
      license: parseStored(LICENSES, membership.license),
      permissionSets: permissionSetsOf(membership),
    })),
  };
}

export function accountOf({ id, identifier, plan, deployment }: AccountRow): Account {
  return {
    id: Number(id),
    identifier,
    plan: parseStored(PLANS, plan),
    deployment: parseStored(DEPLOYMENTS, deployment),
  };
}
