import type { JobRunEvent } from './verify.ts';

/** State of an event in the store: claimed by this call, being processed by another call, or processed. */
export type DeduplicationState = 'claimed' | 'in_progress' | 'done';

/**
 * Stores which events were received. Several processes that receive for one webhook must share a store, for example in
 * Redis: `claim` is `SET key in_progress NX PX ttlMs`, and if that set nothing, `GET key`; `finish` is `SET key done PX
 * ttlMs`; `release` is `DEL key`.
 */
export interface DeduplicationStore {
  /** Stores a new event for `ttlMs` and returns `claimed`; for a stored event, returns its state. */
  claim(eventId: string, ttlMs: number): DeduplicationState | Promise<DeduplicationState>;
  finish(eventId: string, ttlMs: number): unknown;
  release(eventId: string): unknown;
}

export interface DeduplicationOptions {
  /** Time for which a processed event is stored; default one day, more than all retries take by default. */
  ttlMs?: number;
  /**
   * Time after which an event may be claimed again if its process has neither finished nor failed, e.g. because it
   * died; default 5 minutes.
   */
  claimMs?: number;
  /** Maximum number of events in the default store; default 100,000. */
  eventsMax?: number;
  /** Replaces the default store in the memory of this process. */
  store?: DeduplicationStore;
}

/**
 * The event was received again while it is being processed. The response is 503, so that the delivery is retried in
 * case the processing fails.
 */
export class EventInProgressError extends Error {
  override readonly name = 'EventInProgressError';
  readonly code = 'event_in_progress';
  readonly status = 503;
}

const DAY_MS = 86_400_000;
const CLAIM_MS = 300_000;
const EVENTS_MAX = 100_000;

/**
 * Delivery is at least once. Calls `onEvent` once for each `eventId`, whichever webhook or attempt delivers it; a
 * repeat of a processed event is dropped and counts as a success. If `onEvent` throws, the error is thrown and the
 * event is released, so that its retry is processed. A manual redelivery within `ttlMs` is a repeat as well.
 */
export function deduplicate<Event extends Pick<JobRunEvent, 'eventId'> = JobRunEvent>(
  onEvent: (event: Event) => unknown,
  { ttlMs = DAY_MS, claimMs = CLAIM_MS, eventsMax = EVENTS_MAX, store }: DeduplicationOptions = {},
): (event: Event) => Promise<void> {
  const events = store ?? createMemoryStore(eventsMax);
  return async (event) => {
    const state = await events.claim(event.eventId, claimMs);
    if (state === 'done') return;
    if (state === 'in_progress')
      throw new EventInProgressError(`event ${event.eventId} is already being processed`);
    try {
      await onEvent(event);
    } catch (error) {
      await events.release(event.eventId);
      throw error;
    }
    await events.finish(event.eventId, ttlMs);
  };
}

/**
 * Stores the events of this process. If there are more than `eventsMax`, the least recently stored event is removed.
 */
export function createMemoryStore(eventsMax = EVENTS_MAX, now: () => number = Date.now): DeduplicationStore {
  const entries = new Map<string, { state: 'in_progress' | 'done'; expiresAtMs: number }>();
  const setEntry = (eventId: string, state: 'in_progress' | 'done', ttlMs: number) => {
    // Reinserts the event, so that the map is in the order of storing.
    entries.delete(eventId);
    entries.set(eventId, { state, expiresAtMs: now() + ttlMs });
    for (const oldest of entries.keys()) {
      if (entries.size <= eventsMax) break;
      entries.delete(oldest);
    }
  };
  return {
    claim(eventId, ttlMs) {
      const existing = entries.get(eventId);
      if (existing !== undefined && existing.expiresAtMs > now()) return existing.state;
      setEntry(eventId, 'in_progress', ttlMs);
      return 'claimed';
    },
    finish: (eventId, ttlMs) => setEntry(eventId, 'done', ttlMs),
    release: (eventId) => entries.delete(eventId),
  };
}
