import type { JobRunEvent } from '@runhook/contract';

/** Whose runs are reported, by turns. */
export interface Runner {
  accountId: number;
  token: string;
  jobId: number;
  /** Calls with several events copy it, with other ids. */
  template?: JobRunEvent;
}

export interface ReporterSettings {
  /** Of management. */
  url: string;
  runners: Runner[];
  durationMs: number;
  /** A call is a `POST …/events` with so many events; when omitted, it starts a run or ends one in error. */
  eventsPerCall?: number;
}

/** As fast as so many callers get their answers. */
export type ClosedLoop = ReporterSettings & {
  callers: number;
  /** The loop ends after so many calls, too. */
  callsMax?: number;
};

/** By a fixed schedule, whatever the service does meanwhile. */
export type OpenLoop = ReporterSettings & { ratePerSecond: number };

export interface Reported {
  /** Of each event that was accepted, `<account> <run> <event type>`; joined by line feeds. */
  calls: string;
  /** When its call was to be made, and when the response had come, on the shared clock. */
  intendedMs: Float64Array;
  answeredMs: Float64Array;
  refused: number;
  seconds: number;
}

export function callsOf({ calls, intendedMs }: Reported): { call: string; intendedMs: number }[] {
  if (calls === '') return [];
  return calls.split('\n').map((call, index) => ({ call, intendedMs: intendedMs[index] as number }));
}
