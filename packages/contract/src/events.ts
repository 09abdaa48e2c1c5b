import { type EventData, type EventType, isEventType } from './event-types.ts';
import { isId } from './ids.ts';

export interface EventIdentity {
  /** `wev_` and a KSUID. */
  eventId: string;
  accountId: number;
  /** RFC 3339 UTC, nine fractional digits. */
  timestamp: string;
}

interface EventOf<Type extends EventType> extends EventIdentity {
  eventType: Type;
  data: EventData<Type>;
}

/** An event, discriminated by `eventType`, which determines the timestamp in its data. */
export type JobRunEvent = { [Type in EventType]: EventOf<Type> }[EventType];

type OptionalIdentity<E> = E extends JobRunEvent
  ? Omit<E, 'eventId' | 'timestamp'> & { eventId?: string | undefined; timestamp?: string | undefined }
  : never;

/** An event as published: the queue contract lets a publisher omit `eventId` and `timestamp`. */
export type PublishedEvent = OptionalIdentity<JobRunEvent>;

interface PayloadOf<Type extends EventType> extends EventOf<Type> {
  webhooksID: string;
  webhookName: string;
}

/** The body of a delivery (docs/contract.md#events), as a receiver parses it. */
export type DeliveryPayload = { [Type in EventType]: PayloadOf<Type> }[EventType];

/** Queue of events to fan out. A job has one event (name = event type, id = {@link eventJobId}) or a batch of them. */
export const JOB_RUN_EVENTS = 'job-run-events';

/** Identifies an event. The same `eventId` in two accounts is two events, each with its own job. */
export type EventKey = Pick<EventIdentity, 'eventId' | 'accountId'>;

/** Returns the queue job's id, one per event; adding the job again while it is queued has no effect. */
export function eventJobId({ eventId, accountId }: EventKey): string {
  return `${eventId}-${accountId}`;
}

/**
 * Data of a job with several events. Runhook's own producers use it to pay the cost of a queue job once for several
 * events; the job's id is made from the events' ids. Other publishers add a job for each event.
 */
export interface EventBatch {
  events: PublishedEvent[];
}

/** Job name of an {@link EventBatch}. */
export const EVENT_BATCH = 'job.run.batch';

const BATCH_EVENTS_MAX = 100;

/** Returns the events of a batch job, each of which has a valid id and event type; null for any other message. */
export function batchedEvents(message: unknown): (PublishedEvent & { eventId: string })[] | null {
  const events: unknown = (message as Partial<EventBatch> | null | undefined)?.events;
  if (!Array.isArray(events) || events.length > BATCH_EVENTS_MAX) return null;
  return events.every((event) => isId('event', event?.eventId) && isEventType(event.eventType))
    ? events
    : null;
}

/**
 * Queue of deliveries that wait for a retry or were redelivered, and of lanes with deferred ones: job data =
 * {@link DeliveryJob} or {@link LaneJob}.
 */
export const WEBHOOK_DELIVERIES = 'webhook-deliveries';

/**
 * Queue of the dispatchers' scheduled maintenance. Each run of a task is a job, which one dispatcher takes: its name is
 * that of the task, and it has no data.
 */
export const MAINTENANCE = 'maintenance';

/**
 * Carries ids only: the dispatcher reads the delivery from the database when it takes the job. `cycle` is the number of
 * attempts made before the current cycle: 0 for the first cycle.
 */
export interface DeliveryJob {
  deliveryId: string;
  cycle: number;
  /** Account of the delivery, part of the key of its row; absent in jobs of the previous release. */
  accountId?: number;
}

/** Returns the queue job's id, one per cycle of a delivery; adding the job again while it is queued has no effect. */
export function deliveryJobId({ deliveryId, cycle }: DeliveryJob): string {
  return `${deliveryId}-${cycle}`;
}

/** Data of the job of a subscription with deferred deliveries; see docs/architecture.md#lanes. */
export interface LaneJob {
  subscriptionId: string;
  /** Account of the subscription; absent in jobs of the previous release. */
  accountId?: number;
}

/** Returns the queue job's id: one job per lane, however many deliveries are deferred. */
export function laneJobId({ subscriptionId }: LaneJob): string {
  return `lane-${subscriptionId}`;
}

/** Progress of a delivery: its total number of attempts, and the number made before the current cycle. */
export interface CycleProgress {
  cycle: number;
  attemptCount: number;
}

/**
 * Returns the number of attempts that a delivery's cycle has left (docs/contract.md#retries): the first one and its
 * retries, minus those made. The single source for the decision on a further attempt and for the attempts of a queue
 * job.
 */
export function attemptsLeft(limit: { retriesMax: number }, { cycle, attemptCount }: CycleProgress): number {
  return Math.max(0, 1 + limit.retriesMax - (attemptCount - cycle));
}
