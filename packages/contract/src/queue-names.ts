/** Events to fan out: job name = event type, data = the event, job id = `eventId`. */
export const JOB_RUN_EVENTS = 'job-run-events';

/** Deliveries that wait for a retry or exceeded their endpoint's share: job data = {@link DeliveryJob}. */
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
