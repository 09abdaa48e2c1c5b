import type { Account } from '../api/types.ts';

type Permissions = Pick<Account, 'plan' | 'license' | 'webhooks_unavailable' | 'may_write_webhooks'>;

export const PLAN_NAMES: Readonly<Record<Account['plan'], string>> = {
  free: 'Free',
  developer: 'Developer',
  team: 'Team',
  enterprise: 'Enterprise',
};

const LICENSE_NAMES: Readonly<Record<Account['license'], string>> = {
  developer: 'Developer',
  read_only: 'Read-only',
  it: 'IT',
};

/** Why the account has no webhooks, in words; null when it has them (spec, section 1). */
export function webhooksRefusal(account: Pick<Account, 'plan' | 'webhooks_unavailable'>): string | null {
  if (account.webhooks_unavailable === null) return null;
  return account.webhooks_unavailable === 'plan'
    ? `Webhooks are part of the Team and Enterprise plans. This account is on the ${PLAN_NAMES[account.plan]} plan.`
    : 'Webhooks are not available on single-tenant private deployments.';
}

/** Why the caller may not change webhooks here, in words; null when it may (spec, section 5.2). */
export function writeRefusal(account: Permissions): string | null {
  if (account.may_write_webhooks) return null;
  const unavailable = webhooksRefusal(account);
  if (unavailable !== null) return unavailable;
  return account.plan === 'team'
    ? `Changing webhooks on the Team plan takes a Developer license. Yours is ${LICENSE_NAMES[account.license]}.`
    : 'Changing webhooks on the Enterprise plan takes the permission set Account Admin, Admin or Developer. You have none of them.';
}
