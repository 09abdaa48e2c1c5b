import {
  type Deployment,
  type EventType,
  eventMatches,
  type FilterSets,
  formatByName,
  formatCount,
  type IdSet,
  type JobRunEvent,
  type Plan,
  webhooksUnavailableReason,
} from '@runhook/contract';
import type { Target } from '../target.ts';

/** An account with its active subscriptions, as last read. */
export interface AccountSubscriptions {
  accountId: number;
  /** Version of the account and its subscriptions; changes with everything that determines the recipients of events. */
  version: string;
  plan: Plan;
  deployment: Deployment;
  subscriptions: CachedSubscription[];
}

export interface CachedSubscription {
  id: string;
  /** `<id> <version>`; changes with each field of this interface, except plan and deployment in `target`. */
  versionedId: string;
  name: string;
  eventTypes: readonly EventType[];
  jobIds: IdSet;
  /** Null for a subscription without filters. */
  filters: FilterSets | null;
  /**
   * Whether the account has too many deferred deliveries, and this lane at least an equal share of the limit
   * (maintenance/pending-limit.ts). A new delivery without a slot is then cancelled.
   */
  isFull: boolean;
  target: Target;
}

/** Returns the subscriptions that match an event of the account; none if its plan or deployment has no webhooks. */
export function matchSubscriptions(account: AccountSubscriptions, event: JobRunEvent): CachedSubscription[] {
  if (webhooksUnavailableReason(account) !== null) return [];
  return account.subscriptions.filter(
    ({ eventTypes, jobIds, filters }) =>
      eventMatches({ active: true, eventTypes, jobIds, filters }, event).matches,
  );
}

/** A delivery with its event and its current subscription. */
export interface Delivery {
  id: string;
  /** The day partition, `YYYY-MM-DD`. */
  day: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  /** Trigger of the cycle: `automatic` for the event, `manual` for a redelivery. */
  trigger: 'automatic' | 'manual';
  /** Whether a recovery began the cycle. */
  isRecovered: boolean;
  /** Number of attempts before this cycle began. */
  cycle: number;
  /** Number of attempts in all cycles. */
  attemptCount: number;
  nextAttemptAtMs: number | null;
  /** Whether it waits for a slot in its lane, whose job will attempt it. */
  isDeferred: boolean;
  /** The subscription's name at fan-out: part of the body, which never changes. */
  webhookName: string;
  subscriptionId: string;
  event: JobRunEvent;
  /** Null when the row of the subscription no longer exists. */
  target: Target | null;
}

/** Returns the trigger of the next attempt. Only the first attempt of a redelivery is manual; its retries are automatic. */
export function nextTrigger({
  trigger,
  cycle,
  attemptCount,
}: Pick<Delivery, 'trigger' | 'cycle' | 'attemptCount'>): Delivery['trigger'] {
  return attemptCount === cycle ? trigger : 'automatic';
}

/** Next step for a delivery whose queue job runs. */
export type NextStep =
  | { kind: 'attempt'; target: Target }
  | { kind: 'cancel'; reason: string }
  /** An attempt was recorded, but the process died before the queue was updated: the next one is not due yet. */
  | { kind: 'wait'; delayMs: number }
  /** This queue job has nothing left to do. */
  | { kind: 'skip' };

/**
 * A measured clock is inexact by half a round trip. A job that is early by more than this waits for at least this time,
 * so that a wrong clock does not make the queue return the same job repeatedly.
 */
const CLOCK_TOLERANCE_MS = 1_000;

const DELETED_REASON = 'The subscription was deleted.';

/**
 * Returns the next step of a queued delivery, which depends on its current subscription
 * (docs/contract.md#while-retries-wait).
 */
export function nextStep(delivery: Delivery | null, jobCycle: number, nowMs: number): NextStep {
  if (delivery?.status !== 'pending' || delivery.cycle !== jobCycle || delivery.isDeferred)
    return { kind: 'skip' };
  const { target } = delivery;
  const reason = undeliverableReason(target);
  if (target === null || reason !== null) return { kind: 'cancel', reason: reason ?? DELETED_REASON };
  const earlyMs = (delivery.nextAttemptAtMs ?? 0) - nowMs;
  if (earlyMs > CLOCK_TOLERANCE_MS) return { kind: 'wait', delayMs: earlyMs };
  return { kind: 'attempt', target };
}

/** Fields of a target that decide whether the job of the lane makes its attempts. */
type LaneOptions = Pick<Target, 'ordered' | 'rateLimit' | 'format'>;

/** Whether only the job of its lane makes automatic attempts at the target, because it keeps their order or their rate. */
export function isLaneOnly({ ordered, rateLimit, format }: LaneOptions): boolean {
  return ordered || rateLimit !== null || needsLane(format);
}

/** Whether the target tracks jobs, so that events of one job must be sent one after another. */
export function tracksJobs(format: string | null): boolean {
  return format !== null && formatByName(format)?.jobState !== undefined;
}

/** Attempts in a format of a later release fail: in their lane, they do not concern the other webhooks of the event. */
function needsLane(format: string | null): boolean {
  return format !== null && (tracksJobs(format) || formatByName(format) === null);
}

/**
 * Whether the job of the lane must make the next attempt. Redeliveries and recoveries need not wait for other deliveries
 * of their run, but count for the rate, and must not overtake another event of their job.
 */
export function mustUseLane({ trigger }: Pick<Delivery, 'trigger'>, target: LaneOptions): boolean {
  return target.rateLimit !== null || needsLane(target.format) || (target.ordered && trigger === 'automatic');
}

/**
 * Whether the delivery is attempted at once while its subscription is blocked, instead of waiting in the lane for the end
 * of the block: a redelivery, unless it might overtake another event of its job.
 */
export function skipsBlockedLane(
  delivery: Pick<Delivery, 'trigger' | 'cycle' | 'attemptCount' | 'isRecovered'>,
  { format }: Pick<Target, 'format'>,
): boolean {
  return nextTrigger(delivery) === 'manual' && !delivery.isRecovered && !needsLane(format);
}

/** Returns the reason why nothing may be sent to the target, null when it may. A null target is a deleted subscription. */
export function undeliverableReason(
  target: Pick<Target, 'active' | 'clientUrl' | 'deleted' | 'plan' | 'deployment'> | null,
): string | null {
  if (target === null || target.deleted) return DELETED_REASON;
  if (!target.active) return 'The subscription is inactive.';
  if (target.clientUrl === '') return 'The webhook has no endpoint: its events are in its feed.';
  const unavailable = webhooksUnavailableReason(target);
  return unavailable ? `The account's ${unavailable} does not include webhooks.` : null;
}

/** Returns the reason for cancelling a delivery without a slot in a full lane (docs/contract.md#lanes). */
export function fullLaneReason(pendingMax: number): string {
  return (
    `The account has more than ${formatCount(pendingMax)} pending deliveries, and this webhook has ` +
    'reached its share of them. Redeliver or recover it when its endpoint responds again.'
  );
}
