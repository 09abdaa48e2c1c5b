import type { JobRunEvent } from '@runhook/contract';

/** A runner whose runs are reported; runners are used in turn. */
export interface Runner {
  accountId: number;
  token: string;
  jobId: number;
  /** Template for calls with several events, which replace its ids. */
  template?: JobRunEvent;
}

export interface ReporterSettings {
  /** URL of management. */
  url: string;
  runners: Runner[];
  durationMs: number;
  /** If set, a call is a `POST …/events` with this number of events; otherwise it starts a run or ends one in error. */
  eventsPerCall?: number;
}

/** A fixed number of callers, each of which sends its next call when it has a response. */
export type ClosedLoop = ReporterSettings & {
  callers: number;
  /** Number of calls after which the loop ends earlier. */
  callsMax?: number;
};

/** Calls by a fixed schedule, independently of the service. */
export type OpenLoop = ReporterSettings & { ratePerSecond: number };

export interface Reported {
  /** The accepted events as `<account> <run> <event type>`, joined by line feeds. */
  calls: string;
  /** Intended time of the call, and time of the response, on the shared clock. */
  intendedMs: Float64Array;
  respondedAtMs: Float64Array;
  rejected: number;
  seconds: number;
}

export function callsOf({ calls, intendedMs }: Reported): { call: string; intendedMs: number }[] {
  if (calls === '') return [];
  return calls.split('\n').map((call, index) => ({ call, intendedMs: intendedMs[index] as number }));
}
