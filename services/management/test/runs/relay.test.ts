import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { batchedEvents, createId, JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import { createQueueBackend, type EventQueue, openEventQueue } from '@runhook/queue';
import { approximateBytes } from '@runhook/runtime';
import {
  createTestDatabase,
  createTestQueueUrl,
  eventually,
  exampleEvent,
  queueBackends,
  startTcpProxy,
  type TcpProxy,
} from '@runhook/testing';
import { type RejectedEvent, Relay, type RelayOptions } from '../../src/runs/relay.ts';

const UNAVAILABLE_LOG = { level: 'error', message: 'events not added to the queue, will retry' };
const RECOVERED_LOG = { level: 'info', message: 'adding events to the queue succeeds again' };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const logged: { level: string; message: string }[] = [];
beforeEach(() => void logged.splice(0));
const note = (level: string) => (_: object, message: string) => void logged.push({ level, message });
const logger = { info: note('info'), warn: note('warn'), error: note('error') };

const JOB = {
  id: 1,
  account_id: 1,
  name: 'Nightly',
  project_id: 1,
  project_name: 'Analytics',
  environment_id: 1,
  environment_name: 'Production',
};

const createEvents = (count: number): JobRunEvent[] =>
  Array.from({ length: count }, () => ({
    ...exampleEvent('job.run.started', JOB),
    eventId: createId('event'),
  }));

const committed = (events: readonly JobRunEvent[]) => events.map((event) => ({ event, traceContext: null }));
const idsOf = (events: readonly { eventId?: string | undefined }[]) => events.map(({ eventId }) => eventId);

const NO_LATE_EVENTS = { addEach: () => Promise.reject(new Error('none is late')) };

function startRelay(
  queue: Pick<EventQueue, 'add'> & Partial<Pick<EventQueue, 'addEach'>>,
  options: Partial<RelayOptions> = {},
) {
  const events = { ...NO_LATE_EVENTS, ...queue };
  const moved: Record<string, number> = { sent: 0, left_to_reconciler: 0 };
  const onRelayed = (result: string, count: number) => {
    moved[result] = (moved[result] ?? 0) + count;
  };
  const quarantine = () => Promise.reject(new Error('no event is rejected'));
  const relay = new Relay({ events, logger, onRelayed, quarantine, ...options });
  closing.push(() => relay.stop());
  return { relay, moved };
}

describe.each(queueBackends())('the relay, with the queue on $name', (backend) => {
  let queueUrl: string;
  let proxy: TcpProxy;
  beforeEach(async () => {
    const database = await createTestDatabase();
    closing.push(() => database.drop());
    queueUrl = await createTestQueueUrl(backend, database.url);
    proxy = await startTcpProxy(queueUrl);
    closing.push(() => proxy.close());
  });

  function openQueue(url: string): EventQueue {
    const queue = openEventQueue(createQueueBackend(url), () => undefined);
    closing.push(() => queue.close());
    return queue;
  }

  test('retries a call without a response with the same events, so that no event is in two jobs', async () => {
    const queue = openQueue(queueUrl);
    const events = createEvents(4);
    let calls = 0;
    const { relay, moved } = startRelay({
      add: async (batch) => {
        calls += 1;
        await queue.add(batch);
        if (calls > 1) return;
        // Events that are committed meanwhile must not be sent together with events that may already be queued.
        relay.add(committed(events.slice(2)));
        throw new Error('taken, and no answer');
      },
    });
    relay.add(committed(events.slice(0, 2)));
    await eventually(() => expect(moved).toEqual({ sent: 4, left_to_reconciler: 0 }));
    expect(await queuedIds()).toEqual(idsOf(events));
  });

  test('sets an event aside that the queue rejects, and sends the later ones', async () => {
    const queue = openQueue(queueUrl);
    const events = createEvents(40);
    const rejectedEvent = events[11] as JobRunEvent;
    // JSON cannot encode a bigint, so adding the event fails on every queue.
    Object.assign(rejectedEvent, { data: { ...rejectedEvent.data, runId: 1n } });
    const rejected: string[] = [];
    const quarantine = async (rejectedEvents: readonly RejectedEvent[]) => {
      rejected.push(...rejectedEvents.map(({ event }) => event.eventId));
    };
    const { relay, moved } = startRelay(queue, { quarantine });
    relay.add(committed(events));
    await eventually(() => expect(moved).toEqual({ sent: 39, left_to_reconciler: 0, quarantined: 1 }));
    expect(rejected).toEqual([rejectedEvent.eventId]);
    const [last] = createEvents(1) as [JobRunEvent];
    relay.add(committed([last]));
    await eventually(() => expect(moved).toMatchObject({ sent: 40 }));
    const remainingEvents = [...events, last].filter((event) => event !== rejectedEvent);
    expect((await queuedIds()).sort()).toEqual(idsOf(remainingEvents).sort());
  });

  test('sends the other events when an event cannot be set aside', async () => {
    const queue = openQueue(queueUrl);
    const events = createEvents(2);
    Object.assign(events[0] as JobRunEvent, { data: { runId: 1n } });
    const { relay, moved } = startRelay(queue);
    relay.add(committed(events));
    await eventually(() => expect(moved).toEqual({ sent: 1, left_to_reconciler: 0, quarantined: 1 }));
  });

  test('sends late events so that they are queued once although the reconciler adds them, too', async () => {
    const queue = openQueue(queueUrl);
    const [firstEvent, ...events] = createEvents(6) as [JobRunEvent, ...JobRunEvent[]];
    const lateEvents = events.slice(0, 3);
    let nowMs = 0;
    let isUnavailable = true;
    const { relay, moved } = startRelay(
      {
        async add(batch) {
          if (isUnavailable) throw new Error('away');
          await queue.add(batch);
        },
        addEach: (batch) => queue.addEach(batch),
      },
      { nowMs: () => nowMs },
    );
    relay.add(committed([firstEvent]));
    relay.add(committed(lateEvents));
    await eventually(() => expect(logged).toEqual([UNAVAILABLE_LOG]));
    nowMs = 2_500;
    relay.add(committed(events.slice(3)));
    await queue.addEach(lateEvents);
    isUnavailable = false;
    await eventually(() => expect(moved).toEqual({ sent: 6, left_to_reconciler: 0 }));
    const ids = await queuedIds();
    expect(ids).toHaveLength(6);
    expect(new Set(ids)).toEqual(new Set(idsOf([firstEvent, ...events])));
  });

  async function queuedIds(): Promise<(string | undefined)[]> {
    const queue = createQueueBackend(queueUrl).createQueue<JobRunEvent>(JOB_RUN_EVENTS);
    try {
      const jobs = await queue.getJobs(['waiting', 'prioritized'], 0, -1, true);
      return idsOf(jobs.flatMap(({ data }) => batchedEvents(data) ?? [data]));
    } finally {
      await queue.close();
    }
  }

  test('sends complete events in order, at most 500 per call', async () => {
    const queue = openQueue(queueUrl);
    const sizes: number[] = [];
    const { relay, moved } = startRelay({
      add: async (events) => {
        await queue.add(events);
        sizes.push(events.length);
      },
    });
    const events = createEvents(900);
    for (const event of events) relay.add(committed([event]));
    await eventually(() => expect(moved).toEqual({ sent: 900, left_to_reconciler: 0 }));
    // The first event is sent at once; the events that were added meanwhile are sent together.
    expect(sizes).toEqual([1, 500, 399]);
    expect(await queuedIds()).toEqual(idsOf(events));
    expect(relay.backlog).toEqual({ events: 0, oldestSeconds: 0 });
  });

  test('retains events during an outage, logs it once, and sends all in order afterwards', async () => {
    const { relay, moved } = startRelay(openQueue(proxy.url));
    const events = createEvents(1);
    relay.add(committed(events));
    await eventually(() => expect(moved.sent).toBe(1));
    await proxy.cut();
    for (let round = 0; round < 3; round++) {
      const moreEvents = createEvents(2);
      events.push(...moreEvents);
      relay.add(committed(moreEvents));
    }
    await eventually(() => expect(logged).toEqual([UNAVAILABLE_LOG]));
    expect(relay.backlog.events).toBe(6);
    expect(relay.backlog.oldestSeconds).toBeGreaterThan(0);
    await proxy.restore();
    await eventually(() => expect(moved).toEqual({ sent: 7, left_to_reconciler: 0 }));
    expect(await queuedIds()).toEqual(idsOf(events));
    expect(logged).toEqual([UNAVAILABLE_LOG, RECOVERED_LOG]);
  });

  test('tries once more when it is stopped during an outage, and leaves the rest to the reconciler', async () => {
    await proxy.cut();
    const { relay, moved } = startRelay(openQueue(proxy.url));
    relay.add(committed(createEvents(3)));
    await eventually(() => expect(logged).toEqual([UNAVAILABLE_LOG]));
    await relay.stop();
    expect(moved).toEqual({ sent: 0, left_to_reconciler: 3 });
    expect(logged.at(-1)).toEqual({ level: 'warn', message: 'events left to the reconciler' });
  });
});

describe('the relay', () => {
  test('sends a batch again under the same ids when its response was lost', async () => {
    const calls: (string | undefined)[][] = [];
    const { relay, moved } = startRelay({
      add: async (events) => {
        calls.push(idsOf(events));
        if (calls.length === 1) throw new Error('taken, and no answer');
      },
    });
    const events = createEvents(3);
    relay.add(committed(events));
    await eventually(() => expect(moved.sent).toBe(3));
    expect(calls).toEqual([idsOf(events), idsOf(events)]);
  });

  test('retains no more than its limit and leaves the latest events to the reconciler', async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const addedEvents: (string | undefined)[] = [];
    const { relay, moved } = startRelay(
      {
        add: async (events) => {
          await released;
          addedEvents.push(...idsOf(events));
        },
      },
      { queuedBytesMax: 5 * approximateBytes(createEvents(1)[0]) },
    );
    const events = createEvents(8);
    relay.add(committed(events.slice(0, 3)));
    relay.add(committed(events.slice(3)));
    expect(moved).toEqual({ sent: 0, left_to_reconciler: 3 });
    release();
    await eventually(() => expect(moved).toEqual({ sent: 5, left_to_reconciler: 3 }));
    expect(addedEvents).toEqual(idsOf(events.slice(0, 5)));
  });

  test('sends all events before stop() resolves if the queue accepts them', async () => {
    const addedEvents: (string | undefined)[] = [];
    const { relay } = startRelay({
      add: async (events) => {
        await new Promise((resolve) => setImmediate(resolve));
        addedEvents.push(...idsOf(events));
      },
    });
    const events = createEvents(1_200);
    relay.add(committed(events));
    await relay.stop();
    expect(addedEvents).toEqual(idsOf(events));
  });
});
