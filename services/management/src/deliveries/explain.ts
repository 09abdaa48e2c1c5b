/** Why webhooks did not hear about events of a run (docs/contract.md#why-a-webhook-did-not-hear-about-a-run). Pure. */
import {
  type Deployment,
  type EventSelection,
  type EventType,
  eventMatches,
  type Plan,
  RUN_STATUSES,
  runStatusOfCode,
  webhooksUnavailableReason,
} from '@runhook/contract';
import { type RunRow, selectableEvent } from './run-events.ts';

/**
 * The reasons in the order of evaluation: a later one means that the event came closer to the webhook.
 *
 * - `plan`, `deployment`: the account had no webhooks at that time.
 * - `created_later`, `inactive`: the webhook did not exist or was off.
 * - `event_type`, `job`, `run_status`, `environment`, `project`: it does not select the event.
 * - `feed_only`: it has no endpoint.
 * - `changed`: it matches now, and was changed since. `unknown`: it matches now, without a known change.
 */
export const UNNOTIFIED_REASONS = [
  'plan',
  'deployment',
  'created_later',
  'inactive',
  'event_type',
  'job',
  'run_status',
  'environment',
  'project',
  'feed_only',
  'changed',
  'unknown',
] as const;
export type UnnotifiedReason = (typeof UNNOTIFIED_REASONS)[number];

/** The current state of a webhook. */
export interface ExplainedWebhook extends EventSelection {
  id: string;
  name: string;
  isFeedOnly: boolean;
  /** Microseconds since the epoch, as all times here. */
  createdAt: bigint;
}

/** A change of a webhook, or of the plan or deployment of its account. */
export interface Change {
  at: bigint;
  /** Author in words; null if the audit log does not have it. */
  by: string | null;
}

/** Changes, newest first. */
export interface WebhookChanges {
  /** Activations and deactivations. */
  toggles: Change[];
  /** Changes of the fields that select events, with the toggles. */
  selection: Change[];
  creation: Change | null;
}

/** A state of the account, which began with the change. */
export type AccountChange = Change & { plan: Plan; deployment: Deployment };

export interface ExplainedAccount {
  plan: Plan;
  deployment: Deployment;
  /** Newest first. */
  changes: AccountChange[];
}

export interface ExplainedEvent {
  eventType: EventType;
  /** Time at which it was matched with webhooks, or occurred. */
  at: bigint;
}

/** Why a webhook was not notified of an event. */
interface Explanation {
  eventType: EventType;
  reason: UnnotifiedReason;
  /** Its cause and the time at which it began: the deactivation, the creation, the change of the plan. */
  cause: Change | null;
  /** The last change since the event, by which the webhook may have selected other events then. */
  changedSince: Change | null;
}

/** Why a webhook has no deliveries of events of a run; times are microseconds since the epoch, as digits. */
export interface UnnotifiedView {
  subscription_id: string;
  webhook_name: string;
  /** Reason of the event that came closest to it. */
  reason: UnnotifiedReason;
  /** One or two sentences. */
  message: string;
  /** When the cause began, and its author; null if the reason has none or the audit log does not have it. */
  since: string | null;
  by: string | null;
  /** Last change of the webhook since the event; null without one. */
  changed_at: string | null;
  changed_by: string | null;
  /** Each event without a delivery, in the order of sending. */
  events: { event_type: EventType; reason: UnnotifiedReason }[];
  /** The events of the run that it has deliveries of. */
  notified_event_types: EventType[];
}

/** @param events those that the webhook has no delivery of, at least one */
export function explainWebhook(
  webhook: ExplainedWebhook,
  {
    run,
    events,
    notifiedTypes,
  }: { run: RunRow; events: readonly ExplainedEvent[]; notifiedTypes: EventType[] },
  changes: WebhookChanges,
  account: ExplainedAccount,
): UnnotifiedView {
  const explanations = events.map((event) => explainEvent(webhook, event, run, changes, account));
  const closest = explanations.reduce((one, other) => (rankOf(other) > rankOf(one) ? other : one));
  const { reason, cause, changedSince } = closest;
  const types = explanations.filter((other) => other.reason === reason).map(({ eventType }) => eventType);
  return {
    subscription_id: webhook.id,
    webhook_name: webhook.name,
    reason,
    message: messageOf(closest, webhook, types, run),
    since: cause && String(cause.at),
    by: cause?.by ?? null,
    changed_at: changedSince && String(changedSince.at),
    changed_by: changedSince?.by ?? null,
    events: explanations.map((one) => ({ event_type: one.eventType, reason: one.reason })),
    notified_event_types: notifiedTypes,
  };
}

function rankOf({ reason }: Explanation): number {
  return UNNOTIFIED_REASONS.indexOf(reason);
}

function explainEvent(
  webhook: ExplainedWebhook,
  { eventType, at }: ExplainedEvent,
  run: RunRow,
  changes: WebhookChanges,
  account: ExplainedAccount,
): Explanation {
  const changedSince = changes.selection.find((change) => change.at > at) ?? null;
  const explained = (reason: UnnotifiedReason, cause: Change | null = null): Explanation => ({
    eventType,
    reason,
    cause,
    changedSince: changedSince === cause ? null : changedSince,
  });

  const accountState = account.changes.find((change) => change.at <= at) ?? null;
  const unavailable = webhooksUnavailableReason(accountState ?? account);
  if (unavailable !== null) return explained(unavailable, accountState ?? account.changes[0] ?? null);
  if (webhook.createdAt > at) {
    const creation = changes.creation ?? { at: webhook.createdAt, by: null };
    return { ...explained('created_later', creation), changedSince: null };
  }

  const togglesSince = changes.toggles.filter((toggle) => toggle.at > at);
  const wasActive = webhook.active === (togglesSince.length % 2 === 0);
  // If the audit log has the creation, it has every toggle: without an earlier one, the webhook was created inactive.
  const lastToggle = changes.toggles[togglesSince.length] ?? changes.creation;
  if (!wasActive) return explained('inactive', lastToggle);
  const { matches, reason } = eventMatches({ ...webhook, active: true }, selectableEvent(eventType, run));
  if (!matches) return explained(reason);
  // It was on when the event occurred, and off before the event was matched.
  if (!webhook.active) return explained('inactive', changes.toggles[0]);
  if (webhook.isFeedOnly) return explained('feed_only');
  if (changedSince !== null) return explained('changed');
  // An entry of the audit log has the new plan, so the plan before the first entry is not known.
  const firstAccountChange = accountState === null ? account.changes.at(-1) : undefined;
  return firstAccountChange ? explained('plan', firstAccountChange) : explained('unknown');
}

function messageOf(
  { reason, cause, changedSince }: Explanation,
  webhook: ExplainedWebhook,
  eventTypes: readonly EventType[],
  run: RunRow,
): string {
  const sentence = sentenceOf(reason, cause, webhook, eventTypes, run);
  return changedSince === null ? sentence : `${sentence} It was changed ${whenText('at', changedSince)}.`;
}

function sentenceOf(
  reason: UnnotifiedReason,
  cause: Change | null,
  { active }: ExplainedWebhook,
  eventTypes: readonly EventType[],
  run: RunRow,
): string {
  const types = eventTypes.join(' and ');
  switch (reason) {
    case 'plan':
    case 'deployment':
      return `The account's ${reason} did not include webhooks${cause ? `: it was changed ${whenText('at', cause)}` : ''}.`;
    case 'created_later':
      return `It was created later${cause ? `, ${whenText('at', cause)}` : ''}.`;
    case 'inactive':
      return `It ${active ? 'was' : 'is'} off${cause ? ` ${whenText('since', cause)}` : ''}.`;
    case 'event_type':
      return `Its event types do not include ${types}.`;
    case 'job':
      return `Its jobs do not include ${run.job_name} (${run.job_id}).`;
    case 'run_status':
      return `Its filters do not include the run status of ${types}: ${statusesText(eventTypes, run)}.`;
    case 'environment':
      return `Its filters do not include the environment ${run.environment_name} (${run.environment_id}).`;
    case 'project':
      return `Its filters do not include the project ${run.project_name} (${run.project_id}).`;
    case 'feed_only':
      return 'It has no endpoint: its consumer reads the events from the feed.';
    case 'changed':
      return `It matches ${types} now.`;
    case 'unknown':
      return `It matches ${types} now, and the audit log has no change of it since.`;
  }
}

/** "20 (Error)" */
function statusesText(eventTypes: readonly EventType[], run: RunRow): string {
  const codes = new Set(eventTypes.map((type) => selectableEvent(type, run).data.runStatusCode));
  return [...codes]
    .map((code) => {
      const status = runStatusOfCode(code);
      return status === null ? String(code) : `${code} (${RUN_STATUSES[status].humanized})`;
    })
    .join(', ');
}

/** "since 2026-01-31T14:02:00Z by ada@example.com" */
function whenText(preposition: 'at' | 'since', { at, by }: Change): string {
  const time = `${new Date(Number(at / 1_000n)).toISOString().slice(0, 19)}Z`;
  return `${preposition} ${time}${by === null ? '' : ` by ${by}`}`;
}
