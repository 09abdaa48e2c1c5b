// A job runner that publishes straight onto the queue, by the package that job runners import.
import { createId, type JobRunEvent } from '@runhook/contract';
import { createEventPublisher, type EventPublisher } from '@runhook/publisher';
import { dueCount, evenSchedule, sharedNowMs } from '../measure/timing.ts';
import { serve } from './program.ts';

export interface OpenLoop {
  ratePerSecond: number;
  durationMs: number;
  /** Taken one after the other. Their ids are replaced. */
  templates: JobRunEvent[];
}

export interface Prefill {
  count: number;
  templates: JobRunEvent[];
}

export interface Published {
  /** By event: joined by line feeds. */
  eventIds: string;
  /** Which template each event was made from. */
  templateIndexes: Uint32Array;
  /** When it was to be published, and when the queue had it, on the shared clock. */
  intendedMs: Float64Array;
  acceptedMs: Float64Array;
}

const LEAD_MS = 100;
const BULK = 500;
const BULKS_IN_FLIGHT = 4;
const CALLS_IN_FLIGHT = 16;

let publisher: EventPublisher | undefined;

serve({
  /** Anew, too: what it knew of the queue is asked for again. */
  async connect(queueUrl: string): Promise<void> {
    await publisher?.close();
    publisher = createEventPublisher({ queueUrl });
  },
  /** Publishes by the schedule, whatever the service does meanwhile. */
  async openLoop({ ratePerSecond, durationMs, templates }: OpenLoop): Promise<Published> {
    const schedule = evenSchedule(ratePerSecond, durationMs);
    const events = makeEvents(schedule.length, templates);
    const acceptedMs = new Float64Array(schedule.length);
    const startMs = sharedNowMs() + LEAD_MS;
    const calls = new Set<Promise<void>>();
    for (let sent = 0; sent < events.length; ) {
      const due = dueCount(schedule, sharedNowMs() - startMs, sent);
      if (due > sent) {
        const call: Promise<void> = publish(events, sent, due, acceptedMs).finally(() => calls.delete(call));
        calls.add(call);
      }
      sent = due;
      // A queue that is slow gets larger calls, not more of them: what is late counts as late all the same.
      if (calls.size >= CALLS_IN_FLIGHT) await Promise.race(calls);
      else await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(calls);
    return published(
      events,
      templates,
      schedule.map((atMs) => startMs + atMs),
      acceptedMs,
    );
  },
  /** As fast as the queue takes them. */
  async prefill({ count, templates }: Prefill): Promise<Published> {
    const events = makeEvents(count, templates);
    const acceptedMs = new Float64Array(count);
    const intendedMs = new Float64Array(count);
    let next = 0;
    async function fill(): Promise<void> {
      while (next < count) {
        const start = next;
        next = Math.min(count, start + BULK);
        intendedMs.fill(sharedNowMs(), start, next);
        await publish(events, start, next, acceptedMs);
      }
    }
    await Promise.all(Array.from({ length: BULKS_IN_FLIGHT }, fill));
    return published(events, templates, intendedMs, acceptedMs);
  },
  close: async () => await publisher?.close(),
});

function makeEvents(count: number, templates: readonly JobRunEvent[]): JobRunEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const template = templates[index % templates.length] as JobRunEvent;
    // Another run each time, as in life: a run has an event or two, not thousands.
    const data = { ...template.data, runId: String(1_000_000_000 + Math.floor(Math.random() * 9e12)) };
    return { ...template, eventId: createId('event'), data } as JobRunEvent;
  });
}

async function publish(
  events: readonly JobRunEvent[],
  start: number,
  end: number,
  acceptedMs: Float64Array,
): Promise<void> {
  await publisher?.publishMany(events.slice(start, end));
  acceptedMs.fill(sharedNowMs(), start, end);
}

function published(
  events: readonly JobRunEvent[],
  templates: readonly JobRunEvent[],
  intendedMs: Float64Array,
  acceptedMs: Float64Array,
): Published {
  return {
    eventIds: events.map(({ eventId }) => eventId).join('\n'),
    templateIndexes: Uint32Array.from(events, (_, index) => index % templates.length),
    intendedMs,
    acceptedMs,
  };
}
