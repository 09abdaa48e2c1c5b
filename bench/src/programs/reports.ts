/** Whose runs are reported, by turns. */
export interface Runner {
  accountId: number;
  token: string;
  jobId: number;
}

export interface ReporterSettings {
  /** Of management. */
  url: string;
  runners: Runner[];
  durationMs: number;
}

/** As fast as so many callers get their answers. */
export type ClosedLoop = ReporterSettings & { callers: number };

/** By a fixed schedule, whatever the service does meanwhile. */
export type OpenLoop = ReporterSettings & { ratePerSecond: number };

export interface Reported {
  /** Of each call that was accepted, `<account> <run> <event type>`; joined by line feeds. */
  calls: string;
  /** When it was to be made, and when its answer had come, on the shared clock. */
  intendedMs: Float64Array;
  answeredMs: Float64Array;
  refused: number;
  seconds: number;
}

export function callsOf({ calls, intendedMs }: Reported): { call: string; intendedMs: number }[] {
  if (calls === '') return [];
  return calls.split('\n').map((call, index) => ({ call, intendedMs: intendedMs[index] as number }));
}
