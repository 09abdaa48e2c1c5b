import { secondsTimestamp, webhooksUnavailableReason } from '@runhook/contract';
import type { License, PermissionSet } from '@runhook/database';
import type { AccountView } from './account-view.ts';
import { missingPermission } from './permissions.ts';
import type { Credential, Membership, UserPrincipal } from './principal.ts';

/** Who is signed in, and what it may do where: what the console shows and hides by. */
export interface SessionView {
  user_id: number;
  email: string;
  name: string;
  accounts: SessionAccountView[];
  /** When the session ends at the latest, ISO 8601 UTC in seconds with `Z`; null for a caller with an API key. */
  expires_at: string | null;
}

export interface SessionAccountView extends AccountView {
  license: License;
  permission_sets: PermissionSet[];
  /** What keeps the account from having webhooks; null when it has them. */
  webhooks_unavailable: 'plan' | 'deployment' | null;
  may_write_webhooks: boolean;
}

export function sessionView(
  { memberships }: UserPrincipal,
  credential: Credential,
  user: { id: number; email: string; name: string },
  accounts: readonly AccountView[],
): SessionView {
  return {
    user_id: user.id,
    email: user.email,
    name: user.name,
    accounts: accounts.flatMap((account) => {
      const membership = memberships.find((candidate) => candidate.account.id === account.id);
      return membership ? [accountView(account, membership)] : [];
    }),
    expires_at: credential.kind === 'session' ? secondsTimestamp(credential.expiresAt) : null,
  };
}

function accountView(account: AccountView, { license, permissionSets }: Membership): SessionAccountView {
  const unavailable = webhooksUnavailableReason(account);
  const missing = missingPermission('write_webhooks', account.plan, {
    kind: 'user',
    license,
    permissionSets,
  });
  return {
    ...account,
    license,
    permission_sets: permissionSets,
    webhooks_unavailable: unavailable,
    may_write_webhooks: unavailable === null && missing === null,
  };
}
