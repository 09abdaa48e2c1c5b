import type { JobRunEvent, RunStep } from '@runhook/contract';
import { Semaphore } from '@runhook/runtime';
import { messageCharacters } from './permits.ts';

/*
 * Events in flight of this process, one of the four admission controls on the path of an event
 * (docs/architecture.md#admission-controls).
 *
 * | State | Entered when | Left when |
 * |---|---|---|
 * | waiting | 128 slots are taken, or for an event beyond the burst limit, 96 by such events. An event takes one, and one more for each 32,768 characters | a slot is free and no event of a higher priority waits |
 * | in flight | it has its slots | its deliveries are committed, or its work failed |
 *
 * More events would only wait for each other, and occupy memory that the garbage collector has to copy. The limit also
 * bounds the requests that a killed process repeats. While 64 events wait, their workers fetch no job.
 */

const SLOTS = 128;
/** Length of messages for one more slot, in UTF-16 code units: statements contain copies of the event. */
const SLOT_CHARACTERS = 32_768;
/** Share of the slots for low-priority events, those beyond the burst limit of their account. */
const LOW_PRIORITY_SHARE = 0.75;
const SATURATED_AT = 64;

export const eventsMax = (concurrency: number) => Math.min(SLOTS, concurrency);

/** Returns the number of slots of an event. @param steps steps of the run that its message carries */
export function slotsOf(event: Pick<JobRunEvent, 'data'>, steps: readonly RunStep[] | null = null): number {
  let characters = messageCharacters(event);
  for (const { logs, debug_logs } of steps ?? [])
    characters += (logs?.length ?? 0) + (debug_logs?.length ?? 0);
  return 1 + Math.floor(characters / SLOT_CHARACTERS);
}

export class EventsInFlight {
  readonly #slots: Semaphore;
  readonly #lowPriority: Semaphore;
  /** Called when `isSaturated` becomes false. */
  onCapacity: () => void = () => {};

  /** @param concurrency jobs of a queue that this process may have in flight */
  constructor(concurrency: number) {
    const size = eventsMax(concurrency);
    this.#slots = new Semaphore(size);
    this.#lowPriority = new Semaphore(Math.ceil(size * LOW_PRIORITY_SHARE));
  }

  get waiting(): number {
    return this.#slots.waiting + this.#lowPriority.waiting;
  }

  get isSaturated(): boolean {
    return this.waiting >= SATURATED_AT;
  }

  /**
   * Resolves to a function that releases the slots; only its first call has an effect.
   * @param slots {@link slotsOf} the event
   */
  async acquire(isLowPriority: boolean, slots: number): Promise<() => void> {
    if (isLowPriority) await this.#lowPriority.acquire(slots);
    await this.#slots.acquire(slots, isLowPriority);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#release(isLowPriority, slots);
    };
  }

  #release(isLowPriority: boolean, slots: number): void {
    const wasSaturated = this.isSaturated;
    this.#slots.release(slots);
    if (isLowPriority) this.#lowPriority.release(slots);
    if (wasSaturated && !this.isSaturated) this.onCapacity();
  }
}
