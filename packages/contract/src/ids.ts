import { hash } from 'node:crypto';
import { createKsuid, ksuidTimeMs } from './ksuid.ts';

/** Every public id is a prefix and a KSUID. */
const PREFIXES = {
  subscription: 'wsu_',
  event: 'wev_',
  account: 'act_',
  delivery: 'wdl_',
  recovery: 'wrc_',
} as const;

export type IdKind = keyof typeof PREFIXES;

export function createId(kind: IdKind, timeMs: number = Date.now()): string {
  return PREFIXES[kind] + createKsuid(timeMs);
}

export function isId(kind: IdKind, value: unknown): value is string {
  return idTimeMs(kind, value) !== null;
}

/** Milliseconds since the epoch (whole seconds) at which the id was made, or null when it is no id of that kind. */
export function idTimeMs(kind: IdKind, value: unknown): number | null {
  const prefix = PREFIXES[kind];
  if (typeof value !== 'string' || !value.startsWith(prefix)) return null;
  return ksuidTimeMs(value.slice(prefix.length));
}

/** The UTC day (`YYYY-MM-DD`) whose partition holds the event or delivery. Throws on an id of another kind. */
export function idDay(kind: 'event' | 'delivery', id: string): string {
  const timeMs = idTimeMs(kind, id);
  if (timeMs === null) throw new TypeError(`not a ${kind} id: ${JSON.stringify(id)}`);
  return new Date(timeMs).toISOString().slice(0, 10);
}

/**
 * The one delivery of an event to a subscription. Derived, not drawn: fanning out an event twice names the same
 * rows, so the database refuses the second set. Carries the event's time, hence its day partition.
 */
export function deliveryIdFor(eventId: string, subscriptionId: string): string {
  return derivedId('delivery', requiredTimeMs(eventId), `${eventId} ${subscriptionId}`);
}

/** The id of an event whose publisher brought none: derived from its queue job, so that a second look agrees. */
export function eventIdForJob(jobId: string, jobTimestampMs: number): string {
  return derivedId('event', jobTimestampMs, `job ${jobId} ${jobTimestampMs}`);
}

function derivedId(kind: IdKind, timeMs: number, seed: string): string {
  return PREFIXES[kind] + createKsuid(timeMs, hash('sha256', seed, 'buffer').subarray(0, 16));
}

function requiredTimeMs(eventId: string): number {
  const timeMs = idTimeMs('event', eventId);
  if (timeMs === null) throw new TypeError(`not an event id: ${JSON.stringify(eventId)}`);
  return timeMs;
}
