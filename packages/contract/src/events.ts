import type { EventType } from './event-types.ts';

/** Run details that every event carries (spec, section 2.3, `data`). Ids are strings here. */
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

/** The body of a delivery (spec, section 2.3), as a receiver parses it. */
export type DeliveryPayload =
  | PayloadOf<'job.run.started', StartedData>
  | PayloadOf<'job.run.completed', CompletedData>
  | PayloadOf<'job.run.errored', ErroredData>;
