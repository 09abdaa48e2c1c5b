/** The three event types a subscription may name (docs/contract.md#subscriptions). */
export const EVENT_TYPES = ['job.run.started', 'job.run.completed', 'job.run.errored'] as const;

export type EventType = (typeof EVENT_TYPES)[number];

export function isEventType(value: unknown): value is EventType {
  return EVENT_TYPES.includes(value as EventType);
}

/**
 * Run statuses as payloads name them, with their codes (docs/contract.md#events). `Canceled` is recorded and never
 * sent, so its code appears in the runs API only.
 */
export const RUN_STATUS_CODES = { Running: 3, Success: 10, Errored: 20, Canceled: 30 } as const;

export type RunStatus = keyof typeof RUN_STATUS_CODES;

/** Run details that every event carries (docs/contract.md#events). Ids are strings here. */
export interface RunDetails {
  jobId: string;
  jobName: string;
  runId: string;
  environmentId: string;
  environmentName: string;
  engineVersion: string;
  projectName: string;
  projectId: string;
  runStatus: string;
  runStatusCode: number;
  runStatusMessage: string;
  runReason: string;
  /** ISO 8601 UTC, seconds precision, `Z`. */
  runStartedAt: string;
}

export type StartedData = RunDetails;
export type CompletedData = RunDetails & { runFinishedAt: string };
export type ErroredData = RunDetails & { runErroredAt: string };

interface EventOf<Type extends EventType, Data> {
  /** `wev_` and a KSUID. */
  eventId: string;
  eventType: Type;
  accountId: number;
  /** RFC 3339 UTC, nine fractional digits. */
  timestamp: string;
  data: Data;
}

/** An event, discriminated by `eventType`: only completed has `runFinishedAt`, only errored has `runErroredAt`. */
export type JobRunEvent =
  | EventOf<'job.run.started', StartedData>
  | EventOf<'job.run.completed', CompletedData>
  | EventOf<'job.run.errored', ErroredData>;

type OptionalIdentity<E> = E extends JobRunEvent
  ? Omit<E, 'eventId' | 'timestamp'> & { eventId?: string | undefined; timestamp?: string | undefined }
  : never;

/** What a publisher may send: the queue contract lets it leave out `eventId` and `timestamp`. */
export type PublishedEvent = OptionalIdentity<JobRunEvent>;

interface PayloadOf<Type extends EventType, Data> {
  accountId: number;
  webhooksID: string;
  eventId: string;
  timestamp: string;
  eventType: Type;
  webhookName: string;
  data: Data;
}

/** The body of a delivery (docs/contract.md#events), as a receiver parses it. */
export type DeliveryPayload =
  | PayloadOf<'job.run.started', StartedData>
  | PayloadOf<'job.run.completed', CompletedData>
  | PayloadOf<'job.run.errored', ErroredData>;

/** Events to fan out: job name = event type, data = the event, job id = `eventId`. */
export const JOB_RUN_EVENTS = 'job-run-events';

/** Deliveries that wait for a retry or exceeded their endpoint's limit: job data = {@link DeliveryJob}. */
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
}

/** One queue job per cycle of a delivery; adding it again while it waits adds nothing. */
export function deliveryJobId({ deliveryId, cycle }: DeliveryJob): string {
  return `${deliveryId}-${cycle}`;
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
