// A job runner that publishes directly to the queue, with the package for job runners.
import { createId, type JobRunEvent } from '@runhook/contract';
import { createEventPublisher, type EventPublisher } from '@runhook/publisher';
import { dueCount, evenSchedule, sharedNowMs } from '../measure/timing.ts';
import { serve } from './program.ts';

export interface OpenLoop {
  ratePerSecond: number;
  durationMs: number;
  /** Events that are published in turn, with new ids. */
  templates: JobRunEvent[];
}

export interface Prefill {
  count: number;
  templates: JobRunEvent[];
}

export interface Published {
  /** Ids of the events, joined by line feeds. */
  eventIds: string;
  /** Index of the template of each event. */
  templateIndexes: Uint32Array;
  /** Intended time, and time at which the queue accepted the event, on the shared clock. */
  intendedMs: Float64Array;
  acceptedMs: Float64Array;
}

const LEAD_MS = 100;
const BULK_SIZE = 500;
const BULKS_IN_FLIGHT = 4;
const CALLS_IN_FLIGHT = 16;

let publisher: EventPublisher | undefined;

serve({
  /** Opens a new publisher each time, which discards cached state of the queue. */
  async connect(queueUrl: string): Promise<void> {
    await publisher?.close();
    publisher = createEventPublisher({ queueUrl });
  },
  /** Publishes by the schedule, independently of the service. */
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
      // If the queue is slow, calls become larger instead of more numerous. Events that are late count as late in any
      // case.
      if (calls.size >= CALLS_IN_FLIGHT) await Promise.race(calls);
      else await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(calls);
    return toPublished(
      events,
      templates,
      schedule.map((atMs) => startMs + atMs),
      acceptedMs,
    );
  },
  /** Publishes as fast as the queue accepts events. */
  async prefill({ count, templates }: Prefill): Promise<Published> {
    const events = makeEvents(count, templates);
    const acceptedMs = new Float64Array(count);
    const intendedMs = new Float64Array(count);
    let next = 0;
    async function fill(): Promise<void> {
      while (next < count) {
        const start = next;
        next = Math.min(count, start + BULK_SIZE);
        intendedMs.fill(sharedNowMs(), start, next);
        await publish(events, start, next, acceptedMs);
      }
    }
    await Promise.all(Array.from({ length: BULKS_IN_FLIGHT }, fill));
    return toPublished(events, templates, intendedMs, acceptedMs);
  },
  close: async () => await publisher?.close(),
});

function makeEvents(count: number, templates: readonly JobRunEvent[]): JobRunEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const template = templates[index % templates.length] as JobRunEvent;
    // Uses a new run for each event, because in production a run has one or two events.
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

function toPublished(
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
