/** The three event types a subscription may name (spec, sections 2.1 and 6). */
export const EVENT_TYPES = ['job.run.started', 'job.run.completed', 'job.run.errored'] as const;

export type EventType = (typeof EVENT_TYPES)[number];

export function isEventType(value: unknown): value is EventType {
  return EVENT_TYPES.includes(value as EventType);
}
