import type { Deployment, Plan } from '@runhook/contract';
import {
  credentialKind,
  type Database,
  hashCredential,
  type License,
  type PermissionSet,
  runStatement,
} from '@runhook/database';

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

/** What can be asked of an account. Reading needs nothing but a membership or a token of it. */
export type Action = 'read' | 'write_webhooks' | 'report_runs';

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

interface AccountColumns {
  account_id: string;
  identifier: string;
  plan: Plan;
  deployment: Deployment;
  permission_sets: PermissionSet[];
}

/** A user without a membership has one row, with nulls where the membership would be. */
export type UserRow = { user_id: string; license: License } & (AccountColumns | { account_id: null });
type TokenRow = { token_id: string } & AccountColumns;

/** What {@link userPrincipal} needs, from `users u` and {@link USER_MEMBERSHIPS}. */
export const USER_COLUMNS = `
  u.id AS user_id, m.license, m.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment`;
export const USER_MEMBERSHIPS = `
  LEFT JOIN memberships m ON m.user_id = u.id
  LEFT JOIN accounts a ON a.id = m.account_id`;

const USER_BY_KEY = `
  SELECT ${USER_COLUMNS} FROM users u ${USER_MEMBERSHIPS} WHERE u.api_key_hash = $1 ORDER BY a.id`;

const TOKEN_BY_HASH = `
  SELECT t.id AS token_id, t.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment
  FROM service_tokens t
  JOIN accounts a ON a.id = t.account_id
  WHERE t.token_hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;

/**
 * Who holds the credential, in one query; null when nobody does, or when it was revoked or has expired. Asked anew for
 * each request, so that what is rotated or revoked is refused by every process at once.
 *
 * How long a refusal takes tells nothing: what is looked up is the SHA-256 of what the caller sent, so whatever a
 * comparison in the index gives away is about a hash that no caller can steer towards a stored one.
 */
export async function findPrincipal(pool: Database['pool'], credential: string): Promise<Principal | null> {
  const kind = credentialKind(credential);
  if (kind === null) return null;
  const hash = hashCredential(credential);
  return kind === 'user' ? await findUser(pool, hash) : await findServiceToken(pool, hash);
}

async function findUser(pool: Database['pool'], hash: Uint8Array): Promise<Principal | null> {
  const rows = await runStatement<UserRow>(pool, USER_BY_KEY, [hash], 'user_by_key');
  return rows[0] ? userPrincipal(rows[0].user_id, rows) : null;
}

export function userPrincipal(userId: string, rows: readonly UserRow[]): UserPrincipal {
  const memberships = rows.flatMap((row) =>
    row.account_id === null
      ? []
      : [{ account: accountOf(row), license: row.license, permissionSets: row.permission_sets }],
  );
  return { kind: 'user', userId: Number(userId), memberships };
}

async function findServiceToken(pool: Database['pool'], hash: Uint8Array): Promise<Principal | null> {
  const [row] = await runStatement<TokenRow>(pool, TOKEN_BY_HASH, [hash], 'token_by_hash');
  if (!row) return null;
  const { token_id, permission_sets: permissionSets } = row;
  return { kind: 'service_token', tokenId: Number(token_id), account: accountOf(row), permissionSets };
}

function accountOf({ account_id, identifier, plan, deployment }: AccountColumns): Account {
  return { id: Number(account_id), identifier, plan, deployment };
}
