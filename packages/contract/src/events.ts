import {
  EVENT_TYPE_TABLE,
  type EventData,
  type EventType,
  isEventType,
  type RunStatus,
} from './event-types.ts';
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

/** An event, discriminated by `eventType`, which decides the time that its data carries. */
export type JobRunEvent = { [Type in EventType]: EventOf<Type> }[EventType];

type OptionalIdentity<E> = E extends JobRunEvent
  ? Omit<E, 'eventId' | 'timestamp'> & { eventId?: string | undefined; timestamp?: string | undefined }
  : never;

/** What a publisher may send: the queue contract lets it leave out `eventId` and `timestamp`. */
export type PublishedEvent = OptionalIdentity<JobRunEvent>;

interface PayloadOf<Type extends EventType> extends EventOf<Type> {
  webhooksID: string;
  webhookName: string;
}

/** The body of a delivery (docs/contract.md#events), as a receiver parses it. */
export type DeliveryPayload = { [Type in EventType]: PayloadOf<Type> }[EventType];

/** The status in which the event tells its run to be. `runStatus` itself is free text of the publisher. */
export function toldStatus({ eventType, data }: JobRunEvent): RunStatus {
  const { statuses } = EVENT_TYPE_TABLE[eventType];
  return statuses.find((status) => status === data.runStatus) ?? statuses[0];
}

/** Events to fan out: job name = event type, data = the event, job id = {@link eventJobId}. */
export const JOB_RUN_EVENTS = 'job-run-events';

/** What names an event: another account's of the same `eventId` is another one, and has a job of its own. */
export type EventKey = Pick<EventIdentity, 'eventId' | 'accountId'>;

/** One queue job per event; adding it again while it waits adds nothing. */
export function eventJobId({ eventId, accountId }: EventKey): string {
  return `${eventId}-${accountId}`;
}

/**
 * Several events in one job, as Runhook's own producers put them in line when they have several at hand: what the queue
 * costs is paid once. Its id is made of theirs; whoever else publishes sends a job for each event.
 */
export interface EventBatch {
  events: PublishedEvent[];
}

/** The name of their jobs. */
export const EVENT_BATCH = 'job.run.batch';

const BATCH_EVENTS_MAX = 100;

/** The events of a job of several, each with an id at least; null for any other message. */
export function batchedEvents(message: unknown): (PublishedEvent & { eventId: string })[] | null {
  const events: unknown = (message as Partial<EventBatch> | null | undefined)?.events;
  if (!Array.isArray(events) || events.length > BATCH_EVENTS_MAX) return null;
  return events.every((event) => isId('event', event?.eventId) && isEventType(event.eventType))
    ? events
    : null;
}

/** Deliveries that wait for a retry, and lanes with parked ones: job data = {@link DeliveryJob} or {@link LaneJob}. */
export const WEBHOOK_DELIVERIES = 'webhook-deliveries';

/** What the dispatchers do on a schedule, one of them at a time: job name = the task's name, no data. */
export const UPKEEP = 'upkeep';

/**
 * Ids only: what is sent is read from the database when the job's turn comes.
 * `cycle` is the number of attempts made before this cycle began: 0 for the first, more after a redelivery.
 */
export interface DeliveryJob {
  deliveryId: string;
  cycle: number;
  /** Whose delivery it is, which is where its row is found; absent in jobs of the release before. */
  accountId?: number;
}

/** One queue job per cycle of a delivery; adding it again while it waits adds nothing. */
export function deliveryJobId({ deliveryId, cycle }: DeliveryJob): string {
  return `${deliveryId}-${cycle}`;
}

/** A subscription with parked deliveries; see docs/architecture.md#lanes. */
export interface LaneJob {
  subscriptionId: string;
  /** The subscription's; absent in jobs of the release before. */
  accountId?: number;
}

/** One queue job per lane, however much it has parked. */
export function laneJobId({ subscriptionId }: LaneJob): string {
  return `lane-${subscriptionId}`;
}

/** How far a delivery is: its attempts in all, and those made before its cycle began. */
export interface CycleProgress {
  cycle: number;
  attemptCount: number;
}

/**
 * Attempts that a delivery's cycle has left (docs/contract.md#retries): the first one and its retries, less those made.
 * Whoever asks whether there is another attempt, or tells the queue how many to expect, asks here.
 */
export function attemptsLeft(limit: { retriesMax: number }, { cycle, attemptCount }: CycleProgress): number {
  return Math.max(0, 1 + limit.retriesMax - (attemptCount - cycle));
}
