import { EVENT_TYPE_TABLE, EVENT_TYPES, type EventType } from '@runhook/contract/event-types';
import type { Account } from '../api/types.ts';

interface EventText {
  /** Short label for lists. */
  label: string;
  /** A line about when the event is sent. */
  fires: string;
  /** Additional information for receivers. May be empty. */
  remark: string;
}

export const EVENT_TYPES_IN_ORDER = EVENT_TYPES;

/** Texts of the contract, without their Markdown. */
export const EVENT_TEXTS = Object.fromEntries(
  EVENT_TYPES.map((type) => {
    const { label, fires, remark } = EVENT_TYPE_TABLE[type];
    return [type, { label, fires, remark: remark.replaceAll('`', '') }];
  }),
) as Readonly<Record<EventType, EventText>>;

/** Explains why a webhook with both events gets two deliveries for one failed run. */
export const ERRORED_IS_PART_OF_COMPLETED =
  'A failed run is also a completed one: with both selected, it is delivered twice, first as errored, then as completed.';

/** "Run started, completed": for lists, in the order of a run. */
export function formatEventTypes(types: readonly EventType[]): string {
  const chosen = EVENT_TYPES_IN_ORDER.filter((type) => types.includes(type));
  return `Run ${chosen.map((type) => type.slice('job.run.'.length)).join(', ')}`;
}

/** Maximum number of jobs that are listed by name. */
export const JOBS_NAMED_MAX = 2;

/** "All jobs", the names of few jobs, or "12 jobs". @param names names by id, without deleted jobs */
export function formatJobs(ids: readonly string[], names: ReadonlyMap<string, string>): string {
  if (ids.length === 0) return 'All jobs';
  if (ids.length > JOBS_NAMED_MAX) return `${ids.length.toLocaleString()} jobs`;
  return ids.map((id) => names.get(id) ?? `Job ${id}`).join(', ');
}

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

/** Returns why the account has no webhooks; null if it has (docs/contract.md#subscriptions). */
export function webhooksDenialReason(account: Pick<Account, 'plan' | 'webhooks_unavailable'>): string | null {
  if (account.webhooks_unavailable === null) return null;
  return account.webhooks_unavailable === 'plan'
    ? `Webhooks are part of the Team and Enterprise plans. This account is on the ${PLAN_NAMES[account.plan]} plan.`
    : 'Webhooks are not available on single-tenant private deployments.';
}

/** Returns why the user may not change webhooks; null if the user may (docs/contract.md#identity). */
export function writeDenialReason(account: Permissions): string | null {
  if (account.may_write_webhooks) return null;
  const unavailable = webhooksDenialReason(account);
  if (unavailable !== null) return unavailable;
  return account.plan === 'team'
    ? `Changing webhooks on the Team plan requires a Developer license. Yours is ${LICENSE_NAMES[account.license]}.`
    : 'Changing webhooks on the Enterprise plan requires the permission set Account Admin, Admin or Developer. You have none of them.';
}
