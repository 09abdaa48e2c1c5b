import { readFileSync } from 'node:fs';

/** How a value is known: measured, derived from what was measured, simulated, or assumed. */
export type Source = 'measured' | 'derived' | 'assumed';

export interface Known {
  value: number;
  source: Source;
  /** The command and the row that it is from, how it follows from others, or why it is assumed. */
  from: string;
}

/** `measured.json`: by part and name, the unit last in the name. */
export type Measured = Record<keyof ServiceTimes, Record<string, Known>>;

/** What each part takes. Microseconds are of one core; deliveries are counted one by one. */
export interface ServiceTimes {
  management: {
    /** Of a call over REST, with its answer and its part of the relay. */
    callMicros: number;
    batchMicros: number;
    turnMicros: number;
    wakeMicros: number;
    helperShare: number;
    /** Of its work, in garbage collections that stop it. */
    pauseShare: number;
  };
  dispatcher: {
    jobMicros: number;
    eventMicros: number;
    /** To render, sign, send and read one attempt. */
    deliveryMicros: number;
    batchMicros: number;
    turnMicros: number;
    wakeMicros: number;
    helperShare: number;
    /** Of its work, in garbage collections that stop it. */
    pauseShare: number;
    /** From the scaler's wish to the first job. */
    startMs: number;
  };
  redis: {
    jobMicros: number;
    eventMicros: number;
    wakeMicros: number;
    /** Of a dispatcher that waits at one shard. */
    idlePollsPerSecond: number;
    pollMicros: number;
    jobBytes: number;
  };
  postgres: {
    statementMicros: number;
    wakeMicros: number;
    /** Of what reports of runs are recorded with: one reads, one writes. */
    reportStatementMicros: number;
    reportRowMicros: number;
    lookRowMicros: number;
    /** Of an event, and of a delivery with its attempt. */
    eventRowMicros: number;
    deliveryRowMicros: number;
    /** Of a later attempt, read and written. */
    retryRowMicros: number;
    /** What a flush of the log takes before its bytes, on the machine of the benchmark. */
    flushMs: number;
    walBytes: number;
    diskBytes: number;
  };
  /** Where each part has a machine of its own. */
  cluster: {
    /** One way, between two zones. */
    networkMs: number;
    flushMs: number;
    logBytesPerSecond: number;
    /** The largest that one database gets. */
    diskTbMax: number;
    ratePerDatabaseMax: number;
    ratePerInstallationMax: number;
    connectionsMax: number;
    /** Of each process, to its database. */
    connections: number;
    shardsMax: number;
    shardsPerNode: number;
  };
  /** Where everything shares a machine, as in the benchmark. */
  machine: {
    receiverMicros: number;
    publisherMicros: number;
    reporterMicros: number;
    /** One way, over loopback. */
    networkMs: number;
    /** How much the turns of a process differ: the 99th percentile over the median, of what is 1 in the mean. */
    unevenness: number;
    /** A process is half as cold as it gets after so long without work. */
    coldHalfMs: number;
    /** One garbage collection. */
    pauseMs: number;
    /** How much slower a core is while all of the machine are at work. */
    sharingShare: number;
    /** A request as it is sent, with its headers, and what TLS, TCP and IP add. */
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
