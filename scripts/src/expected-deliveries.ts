import type { ReceivedDelivery } from './received-delivery.ts';

/** What one delivery of the demonstration must come to. */
export interface ExpectedDelivery {
  runId: string;
  jobName: string;
  eventType: string;
  /** Attempts that the receiver refuses before it accepts one. */
  refusals: number;
}

/** A delivery as the log of the API has it (docs/contract.md#deliveries). */
export interface LoggedDelivery {
  run_id: string;
  event_type: string;
  status: string;
  attempt_count: number;
}

/** What the receiver has not seen yet, as sentences. Only verified deliveries count. */
export function missingArrivals(
  expected: readonly ExpectedDelivery[],
  received: readonly ReceivedDelivery[],
): string[] {
  return expected.flatMap((delivery) => {
    const arrivals = received.filter(
      ({ runId, eventType, verified }) =>
        verified && runId === delivery.runId && eventType === delivery.eventType,
    );
    const refused = arrivals.filter(({ status }) => status > 299).length;
    if (arrivals.length === 0) return [`${nameOf(delivery)} did not arrive with a verified signature`];
    if (refused !== delivery.refusals) {
      return [`${nameOf(delivery)} was refused ${times(refused)}, not ${times(delivery.refusals)}`];
    }
    if (refused === arrivals.length) return [`${nameOf(delivery)} did not come again after it was refused`];
    return [];
  });
}

/** What the deliveries log does not say yet, as sentences. */
export function missingFromLog(
  expected: readonly ExpectedDelivery[],
  logged: readonly LoggedDelivery[],
): string[] {
  return expected.flatMap((delivery) => {
    const row = logged.find(
      ({ run_id, event_type }) => run_id === delivery.runId && event_type === delivery.eventType,
    );
    if (row === undefined) return [`${nameOf(delivery)} is not in the deliveries log`];
    if (row.status !== 'delivered') return [`${nameOf(delivery)} is ${row.status} in the deliveries log`];
    const attempts = delivery.refusals + 1;
    if (row.attempt_count < attempts) {
      return [`${nameOf(delivery)} has ${row.attempt_count} of ${attempts} attempts in the deliveries log`];
    }
    return [];
  });
}

function nameOf({ eventType, jobName }: ExpectedDelivery): string {
  return `${eventType} of "${jobName}"`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
