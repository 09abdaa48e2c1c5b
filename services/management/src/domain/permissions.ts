import type { Plan } from '@runhook/contract';
import type { PermissionSet } from '@runhook/database';
import type { Holder } from './principal.ts';

/** What can be asked of an account. Reading needs nothing but a membership or a token of it. */
export type Action = 'read' | 'write_webhooks' | 'report_runs';

type Requirement = { licence: 'developer' } | { anyOf: readonly PermissionSet[] };

/**
 * Who may write webhooks (spec, section 5.2). On Enterprise the licence does not matter; on Team no permission set
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

/** Who may create jobs and report runs, on every plan (DESIGN, section 4, "Identity"). */
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
