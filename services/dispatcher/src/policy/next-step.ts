import {
  type Deployment,
  type EventType,
  type JobRunEvent,
  type Plan,
  subscriptionMatches,
  webhooksUnavailableReason,
} from '@runhook/contract';
import type { Target } from '../target.ts';
import type { JobIds } from './job-ids.ts';

/** An account with its active subscriptions, as they were at one moment. */
export interface AccountSubscriptions {
  accountId: number;
  /** Of the account and its subscriptions: another one as soon as anything changes that decides where events go. */
  version: string;
  plan: Plan;
  deployment: Deployment;
  subscriptions: KnownSubscription[];
}

export interface KnownSubscription {
  id: string;
  /** `<id> <version>`; changes whenever a field of this interface changes. */
  versionedId: string;
  name: string;
  eventTypes: readonly EventType[];
  jobIds: JobIds;
  /** Too much of the account waits, and this lane has its share of it: what finds no slot is cancelled, not parked. */
  isFull: boolean;
  target: Target;
}

/** The subscriptions that an event of the account fires for; none when the account has no webhooks. */
export function matching(account: AccountSubscriptions, event: JobRunEvent): KnownSubscription[] {
  if (webhooksUnavailableReason(account) !== null) return [];
  const { eventType, data } = event;
  return account.subscriptions.filter(({ eventTypes, jobIds }) =>
    subscriptionMatches({ active: true, eventTypes, jobIds }, { eventType, jobId: data.jobId }),
  );
}

/** A delivery as the dispatcher handles it: its row, its event, and its subscription as it is now. */
export interface Delivery {
  id: string;
  /** The day partition, `YYYY-MM-DD`. */
  day: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  /** Of the cycle: the event, or a redelivery. */
  trigger: 'automatic' | 'manual';
  /** A recovery began the cycle. */
  isRecovered: boolean;
  /** Attempts made before this cycle began. */
  cycle: number;
  /** Attempts made in all. */
  attemptCount: number;
  nextAttemptAtMs: number | null;
  /** It waits for a slot in its lane, whose job will attempt it. */
  isParked: boolean;
  /** The subscription's name at fan-out: part of the body, which never changes. */
  webhookName: string;
  subscriptionId: string;
  event: JobRunEvent;
  /** Null when the row is gone. */
  target: Target | null;
}

/** Of the attempt that comes next: a person asks for one, whose retries are the service's own. */
export function nextTrigger({
  trigger,
  cycle,
  attemptCount,
}: Pick<Delivery, 'trigger' | 'cycle' | 'attemptCount'>): Delivery['trigger'] {
  return attemptCount === cycle ? trigger : 'automatic';
}

/** What to do with a delivery whose queue job has come. */
export type NextStep =
  | { kind: 'attempt'; target: Target }
  | { kind: 'cancel'; reason: string }
  /** Its attempt was recorded, and the process died before the queue knew: the next one is not due yet. */
  | { kind: 'wait'; delayMs: number }
  /** Nothing is left to do for this queue job. */
  | { kind: 'skip' };

/**
 * A measured clock is inexact by half of a round trip. A job that arrives earlier than this waits for at least this time, so that a wrong
 * clock does not make the queue hand out the same job repeatedly.
 */
const CLOCK_TOLERANCE_MS = 1_000;

const DELETED = 'The subscription was deleted.';

/** The subscription as it is now decides (docs/contract.md#while-retries-wait). */
export function nextStep(delivery: Delivery | null, jobCycle: number, nowMs: number): NextStep {
  if (delivery?.status !== 'pending' || delivery.cycle !== jobCycle || delivery.isParked)
    return { kind: 'skip' };
  const { target } = delivery;
  const reason = undeliverableReason(target);
  if (target === null || reason !== null) return { kind: 'cancel', reason: reason ?? DELETED };
  const earlyMs = (delivery.nextAttemptAtMs ?? 0) - nowMs;
  if (earlyMs > CLOCK_TOLERANCE_MS) return { kind: 'wait', delayMs: earlyMs };
  return { kind: 'attempt', target };
}

/** Why nothing may be sent there now, null as the target of a subscription that is gone; null when it may. */
export function undeliverableReason(
  target: Pick<Target, 'active' | 'deleted' | 'plan' | 'deployment'> | null,
): string | null {
  if (target === null || target.deleted) return DELETED;
  if (!target.active) return 'The subscription is inactive.';
  const unavailable = webhooksUnavailableReason(target);
  return unavailable ? `The account's ${unavailable} does not include webhooks.` : null;
}

/** Why a delivery is cancelled that finds no slot in a lane that is full (docs/contract.md#lanes). */
export function fullLaneReason(pendingMax: number): string {
  return (
    `The account has more than ${pendingMax.toLocaleString('en-US')} deliveries waiting, and this webhook has its ` +
    'share of them. Redeliver or recover it when its endpoint answers.'
  );
}
