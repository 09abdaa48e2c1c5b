import type { Terminal } from './terminal.ts';

/** One attempt of a delivery as the demo receiver reports it. A field is null if the signature was not verified. */
export interface ReceivedDelivery {
  /** ISO 8601. */
  time: string;
  endpoint: string;
  verified: boolean;
  /** The HTTP status of the response. */
  status: number;
  /** The number of requests for this delivery so far, with this one. */
  attempt: number;
  eventId: string | null;
  eventType: string | null;
  webhookId: string | null;
  jobName: string | null;
  runId: string | null;
  runStatus: string | null;
}

export type ReceiverLine = { listening: string } | { delivery: ReceivedDelivery };

/** Parses a line of the demo receiver. Returns null for any other line. */
export function parseReceiverLine(line: string): ReceiverLine | null {
  try {
    const value = JSON.parse(line) as { listening?: string } & ReceivedDelivery;
    if (typeof value.listening === 'string') return { listening: value.listening };
    return typeof value.attempt === 'number' ? { delivery: value } : null;
  } catch {
    return null;
  }
}

const EVENT_TYPE_WIDTH = 'job.run.completed'.length;

/** Formats a delivery as one line: time, event, endpoint, attempt, status, result of the verification, and job. */
export function deliveryLine(delivery: ReceivedDelivery, style: Terminal['style']): string {
  const { time, eventType, endpoint, attempt, status, verified, jobName } = delivery;
  const isAccepted = status >= 200 && status <= 299;
  return [
    style.dim(localTime(time)),
    style.bold((eventType ?? 'unknown event').padEnd(EVENT_TYPE_WIDTH)),
    endpoint,
    `attempt ${attempt}`,
    (isAccepted ? style.green : style.yellow)(`${status} ${isAccepted ? 'accepted' : 'rejected'}`),
    verified ? style.green('signature verified') : style.red('signature NOT verified'),
    style.dim(jobName ?? ''),
  ]
    .join('  ')
    .trimEnd();
}

function localTime(time: string): string {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** The expected result of one delivery of the demonstration. */
export interface ExpectedDelivery {
  runId: string;
  jobName: string;
  eventType: string;
  /** Attempts that the receiver rejects before it accepts one. */
  rejections: number;
}

/** A delivery in the log of the API (docs/contract.md#deliveries). */
export interface LoggedDelivery {
  run_id: string;
  event_type: string;
  status: string;
  attempt_count: number;
}

/** Returns a sentence for each expected delivery that has not arrived. Only verified deliveries count. */
export function findMissingArrivals(
  expected: readonly ExpectedDelivery[],
  received: readonly ReceivedDelivery[],
): string[] {
  return expected.flatMap((delivery) => {
    const arrivals = received.filter(
      ({ runId, eventType, verified }) =>
        verified && runId === delivery.runId && eventType === delivery.eventType,
    );
    const rejected = arrivals.filter(({ status }) => status > 299).length;
    if (arrivals.length === 0) return [`${formatName(delivery)} did not arrive with a verified signature`];
    if (rejected !== delivery.rejections) {
      return [
        `${formatName(delivery)} was rejected ${formatTimes(rejected)}, not ${formatTimes(delivery.rejections)}`,
      ];
    }
    if (rejected === arrivals.length)
      return [`${formatName(delivery)} was not sent again after it was rejected`];
    return [];
  });
}

/** Returns a sentence for each expected delivery that the deliveries log does not show yet. */
export function findMissingInLog(
  expected: readonly ExpectedDelivery[],
  logged: readonly LoggedDelivery[],
): string[] {
  return expected.flatMap((delivery) => {
    const row = logged.find(
      ({ run_id, event_type }) => run_id === delivery.runId && event_type === delivery.eventType,
    );
    if (row === undefined) return [`${formatName(delivery)} is not in the deliveries log`];
    if (row.status !== 'delivered') return [`${formatName(delivery)} is ${row.status} in the deliveries log`];
    const attempts = delivery.rejections + 1;
    if (row.attempt_count < attempts) {
      return [
        `${formatName(delivery)} has ${row.attempt_count} of ${attempts} attempts in the deliveries log`,
      ];
    }
    return [];
  });
}

function formatName({ eventType, jobName }: ExpectedDelivery): string {
  return `${eventType} of "${jobName}"`;
}

function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
