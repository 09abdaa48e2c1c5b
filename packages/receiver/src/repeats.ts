import type { JobRunEvent } from './verify.ts';

/** What a store says of an event: nobody had it, somebody is at it, or it is done. */
export type RepeatState = 'claimed' | 'working' | 'done';

/**
 * Where it is remembered which events came already. Several processes that receive for one webhook share one, in Redis for
 * example: `claim` is `SET key working NX PX ttlMs`, and if that set nothing, `GET key`; `finish` is `SET key done PX ttlMs`;
 * `release` is `DEL key`.
 */
export interface RepeatStore {
  /** Notes an event that is not known, and says so; of one that is known, what was noted. Forgets it after `ttlMs`. */
  claim(eventId: string, ttlMs: number): RepeatState | Promise<RepeatState>;
  finish(eventId: string, ttlMs: number): unknown;
  release(eventId: string): unknown;
}

export interface RepeatOptions {
  /** How long an event is remembered once it is done; a day when omitted, which is more than all retries take. */
  ttlMs?: number;
  /** How long it is somebody's who neither finishes nor fails, as a process that died; 5 minutes when omitted. */
  workingMs?: number;
  /** Of the memory's own store: the most events it remembers; 100,000 when omitted. */
  eventsMax?: number;
  /** Instead of the memory of this process. */
  store?: RepeatStore;
}

/** An event that comes while it is being worked on. Answered 503, so that it comes again and nothing is lost if that fails. */
export class RepeatUnderway extends Error {
  override readonly name = 'RepeatUnderway';
  readonly code = 'repeat_underway';
  readonly status = 503;
}

const DAY_MS = 86_400_000;
const WORKING_MS = 300_000;
const EVENTS_MAX = 100_000;

/**
 * Delivery is at least once. Calls `onEvent` once for each `eventId`, whichever webhook or attempt brings it: a repeat of
 * what is done is dropped, which is answered as a success. What `onEvent` throws is thrown, and the event forgotten, so that its
 * retry is worked on. A redelivery by hand is a repeat too, within `ttlMs`.
 */
export function withoutRepeats<Event extends Pick<JobRunEvent, 'eventId'> = JobRunEvent>(
  onEvent: (event: Event) => unknown,
  { ttlMs = DAY_MS, workingMs = WORKING_MS, eventsMax = EVENTS_MAX, store }: RepeatOptions = {},
): (event: Event) => Promise<void> {
  const known = store ?? rememberInMemory(eventsMax);
  return async (event) => {
    const state = await known.claim(event.eventId, workingMs);
    if (state === 'done') return;
    if (state === 'working') throw new RepeatUnderway(`event ${event.eventId} is being worked on`);
    try {
      await onEvent(event);
    } catch (error) {
      await known.release(event.eventId);
      throw error;
    }
    await known.finish(event.eventId, ttlMs);
  };
}

/** The events of this process. Beyond `eventsMax` the one that was noted longest ago is forgotten. */
export function rememberInMemory(eventsMax = EVENTS_MAX, now: () => number = Date.now): RepeatStore {
  const noted = new Map<string, { state: 'working' | 'done'; until: number }>();
  const note = (eventId: string, state: 'working' | 'done', ttlMs: number) => {
    // Taken out and put back, so that the first is the one noted longest ago.
    noted.delete(eventId);
    noted.set(eventId, { state, until: now() + ttlMs });
    for (const oldest of noted.keys()) {
      if (noted.size <= eventsMax) break;
      noted.delete(oldest);
    }
  };
  return {
    claim(eventId, ttlMs) {
      const former = noted.get(eventId);
      if (former !== undefined && former.until > now()) return former.state;
      note(eventId, 'working', ttlMs);
      return 'claimed';
    },
    finish: (eventId, ttlMs) => note(eventId, 'done', ttlMs),
    release: (eventId) => noted.delete(eventId),
  };
}
