import { type EventType, type JobRunEvent, reportedStatus } from '@runhook/contract';
import type { Delivery } from './next-step.ts';

/* Order of the deliveries of one run to an ordered webhook (docs/contract.md#order-of-a-run). */

/** The event types in the order of a run. */
export const ORDERED_TYPES: readonly EventType[] = [
  'job.run.started',
  'job.run.errored',
  'job.run.completed',
];

function precedes(one: EventType, other: EventType): boolean {
  return ORDERED_TYPES.indexOf(one) < ORDERED_TYPES.indexOf(other);
}

/** Whether other events may wait for one of the type. */
export function hasSuccessors(type: EventType): boolean {
  return ORDERED_TYPES.some((other) => precedes(type, other));
}

/** A delivery on record of the subscription and one of the runs. */
export interface RunDelivery {
  id: string;
  eventId: string;
  eventType: EventType;
  /** Digits. */
  runId: string;
  /** Whether later ones must wait for it: pending in its first cycle. Redeliveries and recoveries have ended before. */
  isUnended: boolean;
  /** Whether it has an attempt, or its lane is sending one. */
  isSent: boolean;
}

/** The event that a delivery waits for. */
export type Predecessor = Pick<RunDelivery, 'eventId' | 'eventType'>;

/** Whether the order applies to the delivery: not to a redelivery or a recovery. */
export function isOrdered({ trigger }: Pick<Delivery, 'trigger'>): boolean {
  return trigger === 'automatic';
}

/**
 * Returns the types of earlier events that the run may have reported although no delivery of them is on record: their
 * events may be undispatched. A run that has not failed sends no `job.run.errored`.
 */
export function unrecordedTypes(event: JobRunEvent, recorded: readonly RunDelivery[]): EventType[] {
  const { eventType, data } = event;
  return ORDERED_TYPES.filter(
    (type) =>
      precedes(type, eventType) &&
      (type !== 'job.run.errored' || reportedStatus(event) === 'Errored') &&
      !recorded.some((one) => one.runId === data.runId && one.eventType === type),
  );
}

/**
 * Returns the first event of the run that the delivery must wait for, null if it is its turn.
 * @param undispatched events of the account that match the subscription and have no delivery yet
 */
export function predecessorOf(
  { event: { eventType, data } }: Pick<Delivery, 'event'>,
  recorded: readonly RunDelivery[],
  undispatched: readonly JobRunEvent[],
): Predecessor | null {
  const earlier = [
    ...recorded.filter(({ runId, isUnended }) => isUnended && runId === data.runId),
    ...undispatched.filter((event) => event.data.runId === data.runId),
  ].filter((one) => precedes(one.eventType, eventType));
  return earlier.reduce<Predecessor | null>(
    (first, { eventId, eventType }) =>
      first === null || precedes(eventType, first.eventType) ? { eventId, eventType } : first,
    null,
  );
}

/** Whether a later event of its run was sent before the first attempt of the delivery. */
export function isOutOfOrder(
  { event: { eventType, data }, attemptCount }: Pick<Delivery, 'event' | 'attemptCount'>,
  recorded: readonly RunDelivery[],
): boolean {
  return (
    attemptCount === 0 &&
    recorded.some((one) => one.isSent && one.runId === data.runId && precedes(eventType, one.eventType))
  );
}
