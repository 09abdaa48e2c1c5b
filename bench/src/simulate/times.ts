import { readFileSync } from 'node:fs';

/** The source of a value: measured, derived from measured values, or assumed. */
export type Source = 'measured' | 'derived' | 'assumed';

export interface MeasuredValue {
  value: number;
  source: Source;
  /** The command and row of the measurement, the derivation, or the reason for the assumption. */
  from: string;
}

/** Content of `measured.json`: by part and name, with the unit at the end of the name. */
export type Measured = Record<keyof ServiceTimes, Record<string, MeasuredValue>>;

/** The costs of each part. Microseconds are of one core; costs of deliveries are per delivery. */
export interface ServiceTimes {
  management: {
    /** Cost of a REST call, including its response and its share of the relay. */
    callMicros: number;
    batchMicros: number;
    iterationMicros: number;
    wakeMicros: number;
    helperShare: number;
    /** Share of the work for garbage collections that stop the process. */
    pauseShare: number;
  };
  dispatcher: {
    jobMicros: number;
    eventMicros: number;
    /** Cost of rendering, signing, sending and reading one attempt. */
    deliveryMicros: number;
    batchMicros: number;
    iterationMicros: number;
    wakeMicros: number;
    helperShare: number;
    /** Share of the work for garbage collections that stop the process. */
    pauseShare: number;
    /** Time from the scaler's request to the first job. */
    startMs: number;
  };
  redis: {
    jobMicros: number;
    eventMicros: number;
    wakeMicros: number;
    /** Polls of a dispatcher that waits at one shard. */
    idlePollsPerSecond: number;
    pollMicros: number;
    jobBytes: number;
  };
  postgres: {
    statementMicros: number;
    wakeMicros: number;
    /** Cost of the statements that record reports of runs: one reads, one writes. */
    reportStatementMicros: number;
    reportRowMicros: number;
    stateRowMicros: number;
    /** Costs of an event, and of a delivery with its attempt. */
    eventRowMicros: number;
    deliveryRowMicros: number;
    /** Cost of reading and writing a later attempt. */
    retryRowMicros: number;
    /** Duration of a flush without its bytes, on the machine of the benchmark. */
    flushMs: number;
    walBytes: number;
    diskBytes: number;
  };
  /** Values for a cluster in which each part has a separate machine. */
  cluster: {
    /** Latency of one direction between two zones. */
    networkMs: number;
    flushMs: number;
    logBytesPerSecond: number;
    /** Maximum size of one database. */
    diskTbMax: number;
    ratePerDatabaseMax: number;
    ratePerInstallationMax: number;
    connectionsMax: number;
    /** Connections of each process to its database. */
    connections: number;
    shardsMax: number;
    shardsPerNode: number;
  };
  /** Values for a machine that all parts share, as in the benchmark. */
  machine: {
    receiverMicros: number;
    publisherMicros: number;
    reporterMicros: number;
    /** Latency of one direction over loopback. */
    networkMs: number;
    /** Variation of the iterations of a process: 99th percentile over median of a factor whose mean is 1. */
    unevenness: number;
    /** Idle time after which a process has half of the maximum wake-up cost. */
    coldHalfMs: number;
    /** Duration of one garbage collection. */
    pauseMs: number;
    /** Slowdown of a core while all cores of the machine are busy. */
    sharingShare: number;
    /** Bytes of a request with its headers, and the overhead of TLS, TCP and IP. */
    requestBytes: number;
    overheadBytes: number;
  };
}

export const MEASURED = new URL('../../simulate/measured.json', import.meta.url);

export function readMeasured(file: URL = MEASURED): Measured {
  return JSON.parse(readFileSync(file, 'utf8')) as Measured;
}

export function timesOf(measured: Measured): ServiceTimes {
  return Object.fromEntries(
    Object.entries(measured).map(([part, values]) => [
      part,
      Object.fromEntries(Object.entries(values).map(([name, { value }]) => [name, value])),
    ]),
  ) as unknown as ServiceTimes;
}
