import type { EventType } from './event-types.ts';

/**
 * Whether a subscription fires for an event: its event types name it, and its jobs name the job or are empty, which
 * means all jobs of the account (spec, section 6, rule 4). An inactive subscription fires for nothing.
 */
export function subscriptionMatches(
  subscription: { active: boolean; eventTypes: readonly string[]; jobIds: readonly string[] },
  event: { eventType: EventType; jobId: string },
): boolean {
  return (
    subscription.active &&
    subscription.eventTypes.includes(event.eventType) &&
    (subscription.jobIds.length === 0 || subscription.jobIds.includes(event.jobId))
  );
}
