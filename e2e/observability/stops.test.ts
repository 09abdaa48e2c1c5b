import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createEventPublisher } from '@runhook/publisher';
import {
  eventually,
  exampleEvent,
  oneQueueBackend,
  type QueueBackend,
  queueBackends,
  seedSubscription,
} from '@runhook/testing';
import type { RunningService } from '../services.ts';
import { openSystem, type System } from './system.ts';

/** Interval between two calls of the load, in milliseconds. */
const BURST_INTERVAL_MS = 25;
const EVENTS_PER_BURST = 2;
/** Number of pending deliveries at which the load pauses on a busy machine, so that few are pending at the end. */
const BACKLOG_MAX = 200;
/** Number of requests between two steps of the restart, so that there is load before and after each. */
const STEP_REQUESTS = 20;
const RESPONSE_DELAY_MS = 40;
/** Ends a test that hangs. */
const STORY_TIMEOUT_MS = 600_000;
/** The locks of interrupted jobs must expire first. */
const LOCK_EXPIRY_OPTIONS = { timeoutMs: STORY_TIMEOUT_MS / 2 };

interface Attempt {
  event_id: string;
  number: number;
  http_status_code: number;
  error_code: string | null;
}
const SELECT_ATTEMPTS = `
  SELECT d.event_id, a.number, a.http_status_code, a.error_code
  FROM logged_attempts a JOIN deliveries d ON d.day = a.day AND d.id = a.delivery_id`;

// The parts do not depend on the queue, so each runs on one; other-queue.long.test.ts repeats them on the other one.
const [underLoad = { name: 'PostgreSQL' as const }] = oneQueueBackend();
const inFlight = queueBackends().find(({ name }) => name !== underLoad.name) ?? underLoad;

async function openSubscribedSystem(backend: QueueBackend): Promise<System> {
  const system = await openSystem(backend);
  await seedSubscription(system.database, {
    accountId: system.account.id,
    clientUrl: system.receiver.url,
  });
  return system;
}

const eventOf = ({ account }: System) => exampleEvent('job.run.started', account.jobs[0] as never);
const arrivedAt = ({ receiver }: System) => receiver.requests.map(({ headers }) => headers['webhook-id']);
const attemptsOf = async ({ database }: System) => (await database.pool.query<Attempt>(SELECT_ATTEMPTS)).rows;
const pendingOf = async ({ database }: System) => {
  const { rows } = await database.pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM deliveries WHERE status = 'pending'`,
  );
  return rows[0]?.count;
};

describe(`a rolling restart, with the queue on ${underLoad.name}`, () => {
  let system: System;
  beforeAll(async () => {
    system = await openSubscribedSystem(underLoad);
  });
  afterAll(() => system.close());

  /** Publishes continuously until `end` is called, which resolves with the ids. */
  function startLoad(): { end(): Promise<string[]> } {
    const publisher = createEventPublisher({ queueUrl: system.queueUrl });
    const published: string[] = [];
    let ended = false;
    const run = async () => {
      while (!ended) {
        if (published.length - system.receiver.requests.length > BACKLOG_MAX) {
          await wait(BURST_INTERVAL_MS);
          continue;
        }
        const burst = Array.from({ length: EVENTS_PER_BURST }, () => eventOf(system));
        // Events have ids, so a repeated call changes nothing.
        const [ids] = await Promise.all([
          eventually(() => publisher.publishMany(burst)),
          wait(BURST_INTERVAL_MS),
        ]);
        published.push(...ids);
      }
    };
    const running = run();
    return {
      async end() {
        ended = true;
        await running;
        await publisher.close();
        return published;
      },
    };
  }

  test(
    'two dispatchers are replaced under load, and no request is lost, repeated or cut off',
    async () => {
      system.receiver.respondWith(async () => {
        await wait(RESPONSE_DELAY_MS);
        return { status: 200 };
      });
      const former = await Promise.all([system.start('dispatcher'), system.start('dispatcher')]);
      const startedMs = performance.now();
      const load = startLoad();
      await system.receiver.waitFor(100);
      const codes: (number | null)[] = [];
      const step = () => system.receiver.waitFor(system.receiver.requests.length + STEP_REQUESTS);
      for (const dispatcher of former) {
        await system.start('dispatcher');
        await step();
        codes.push(await dispatcher.stop());
        await step();
      }
      const published = await load.end();
      const seconds = (performance.now() - startedMs) / 1_000;
      await eventually(async () => expect(await attemptsOf(system)).toHaveLength(published.length), {
        intervalMs: 200,
      });

      expect(codes).toEqual([0, 0]);
      expect(published.length).toBeGreaterThan(150);
      // Every request is in the log once, and every event arrived once.
      expect(arrivedAt(system).sort()).toEqual(published.sort());
      const logged = await attemptsOf(system);
      expect(logged.map(({ event_id }) => event_id).sort()).toEqual(published);
      expect(logged.filter(({ number, error_code }) => number !== 1 || error_code !== null)).toEqual([]);
      expect(await pendingOf(system)).toBe(0);
      const rate = Math.round(published.length / seconds);
      process.stderr.write(
        `replaced on ${underLoad.name} under ${rate} events/s: ${published.length} events\n`,
      );
    },
    STORY_TIMEOUT_MS,
  );
});

describe(`a stop, with the queue on ${inFlight.name}`, () => {
  let system: System;
  let dispatcher: RunningService;
  beforeAll(async () => {
    system = await openSubscribedSystem(inFlight);
    dispatcher = await system.start('dispatcher');
  });
  afterAll(() => system.close());

  const publish = async (count: number) => {
    const publisher = createEventPublisher({ queueUrl: system.queueUrl });
    try {
      return await publisher.publishMany(Array.from({ length: count }, () => eventOf(system)));
    } finally {
      await publisher.close();
    }
  };
  const probe = async (path: string) => (await fetch(`${dispatcher.url}${path}`)).status;

  test('requests in flight at SIGTERM finish and are logged, while readiness fails and no job is taken', async () => {
    const release = deferred();
    system.receiver.respondWith(async () => {
      await release.promise;
      return { status: 200 };
    });
    await publish(10);
    await system.receiver.waitFor(10);
    const stopped = dispatcher.stop();
    await eventually(async () => expect(await probe('/readyz')).toBe(503));
    // A failing liveness probe would end the process during its work.
    expect(await probe('/healthz')).toBe(200);
    await publish(1);
    release.resolve();
    expect(await stopped).toBe(0);
    expect(system.receiver.requests).toHaveLength(10);
    const logged = await attemptsOf(system);
    expect(logged.map(({ http_status_code }) => http_status_code)).toEqual(Array(10).fill(200));
    // The next dispatcher takes the event that was published during the stop.
    dispatcher = await system.start('dispatcher');
    await system.receiver.waitFor(11);
    await eventually(async () => expect(await attemptsOf(system)).toHaveLength(11));
  });

  test(
    'a second signal ends a stop immediately, and only requests in flight are sent again',
    async () => {
      const done = arrivedAt(system);
      system.receiver.respondWith({ neverResponds: true });
      const cutOff = await publish(5);
      await system.receiver.waitFor(16);
      const first = dispatcher.stop();
      // A process handles two equal signals as one until it has handled the first.
      await eventually(async () => expect(await probe('/readyz')).toBe(503));
      expect(await dispatcher.stop()).toBe(1);
      await first;
      system.receiver.respondWith(200);
      // A dispatcher leaves first attempts to the process that began them for the duration of an attempt.
      await system.start('dispatcher', { DELIVERY_TIMEOUT_MS: '10000' });
      await system.receiver.waitFor(21, LOCK_EXPIRY_OPTIONS);
      await eventually(async () => expect(await pendingOf(system)).toBe(0), LOCK_EXPIRY_OPTIONS);
      expect(arrivedAt(system).sort()).toEqual([...done, ...cutOff, ...cutOff].sort());
    },
    STORY_TIMEOUT_MS,
  );
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
