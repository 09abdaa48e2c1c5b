import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEventPublisher } from '@runhook/publisher';
import { eventually, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { openSystem, type System } from './system.ts';

/** Every so many milliseconds one call with so many events. */
const BURST_EVERY_MS = 25;
const EVENTS_PER_BURST = 2;
/** On a machine that is busy the load waits, so that what is left at the end is little. */
const BEHIND_MAX = 200;
/** Between one step of the restart and the next, so that each has load before it and behind it. */
const STEP_REQUESTS = 20;
const ANSWER_AFTER_MS = 40;
/** A net under what hangs. */
const WHOLE_STORY_MS = 600_000;
/** Locks of what was cut off run out first. */
const AFTER_LOCKS = { timeoutMs: WHOLE_STORY_MS / 2 };

interface Attempt {
  event_id: string;
  number: number;
  http_status_code: number;
  error_code: string | null;
}
const ATTEMPTS = `
  SELECT d.event_id, a.number, a.http_status_code, a.error_code
  FROM logged_attempts a JOIN deliveries d ON d.day = a.day AND d.id = a.delivery_id`;

describe.each(queueBackends())('a stop, with the queue on $name', (backend) => {
  let system: System;
  beforeEach(async () => {
    system = await openSystem(backend);
    await seedSubscription(system.database, {
      accountId: system.account.id,
      clientUrl: system.receiver.url,
    });
  });
  afterEach(() => system.close());

  const event = () => exampleEvent('job.run.started', system.account.jobs[0] as never);
  const arrived = () => system.receiver.requests.map(({ headers }) => headers['webhook-id']);
  const attempts = async () => (await system.database.pool.query<Attempt>(ATTEMPTS)).rows;
  const pending = async () => {
    const { rows } = await system.database.pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM deliveries WHERE status = 'pending'`,
    );
    return rows[0]?.count;
  };

  /** Publishes without a pause until it is told to end; answers the ids. */
  function startLoad(): { end(): Promise<string[]> } {
    const publisher = createEventPublisher({ queueUrl: system.queueUrl });
    const published: string[] = [];
    let ended = false;
    const run = async () => {
      while (!ended) {
        if (published.length - system.receiver.requests.length > BEHIND_MAX) {
          await wait(BURST_EVERY_MS);
          continue;
        }
        const burst = Array.from({ length: EVENTS_PER_BURST }, event);
        // Its ids make a call that is repeated the same one.
        const [ids] = await Promise.all([
          eventually(() => publisher.publishMany(burst)),
          wait(BURST_EVERY_MS),
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
    'two dispatchers are replaced under load: nothing is lost, sent twice, or cut off',
    async () => {
      system.receiver.respondWith(async () => {
        await wait(ANSWER_AFTER_MS);
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
      await eventually(async () => expect(await attempts()).toHaveLength(published.length), {
        intervalMs: 200,
      });

      expect(codes).toEqual([0, 0]);
      expect(published.length).toBeGreaterThan(150);
      // Every request that came in is in the log, once, and every event came in, once.
      expect(arrived().sort()).toEqual(published.sort());
      const logged = await attempts();
      expect(logged.map(({ event_id }) => event_id).sort()).toEqual(published);
      expect(logged.filter(({ number, error_code }) => number !== 1 || error_code !== null)).toEqual([]);
      expect(await pending()).toBe(0);
      const rate = Math.round(published.length / seconds);
      process.stderr.write(
        `replaced on ${backend.name} under ${rate} events/s: ${published.length} events\n`,
      );
    },
    WHOLE_STORY_MS,
  );

  test('what is in flight at SIGTERM ends and is logged, while readiness is red and no more is taken', async () => {
    const release = deferred();
    system.receiver.respondWith(async () => {
      await release.promise;
      return { status: 200 };
    });
    const dispatcher = await system.start('dispatcher');
    const publisher = createEventPublisher({ queueUrl: system.queueUrl });
    system.onClose(() => publisher.close());
    await publisher.publishMany(Array.from({ length: 10 }, event));
    await system.receiver.waitFor(10);
    const stopped = dispatcher.stop();
    const probe = async (path: string) => (await fetch(`${dispatcher.url}${path}`)).status;
    await eventually(async () => expect(await probe('/readyz')).toBe(503));
    // Whoever restarts what is not alive would cut off what is being finished.
    expect(await probe('/healthz')).toBe(200);
    await publisher.publish(event());
    release.resolve();
    expect(await stopped).toBe(0);
    expect(system.receiver.requests).toHaveLength(10);
    expect(await attempts()).toHaveLength(10);
    expect((await attempts()).every(({ http_status_code }) => http_status_code === 200)).toBe(true);
    // The one that came too late waits for the next dispatcher.
    await system.start('dispatcher');
    await system.receiver.waitFor(11);
  });
});

/** Mostly a wait until the locks of what was cut off have run out: both back ends wait together. */
test(
  'a second signal ends a stop at once, and only what was in flight is sent again',
  async () => {
    await Promise.all(
      queueBackends().map(async (backend) => {
        const system = await openSystem(backend);
        try {
          await cutOff(system);
        } finally {
          await system.close();
        }
      }),
    );
  },
  WHOLE_STORY_MS,
);

async function cutOff(system: System): Promise<void> {
  const { receiver, account, database } = system;
  await seedSubscription(database, { accountId: account.id, clientUrl: receiver.url });
  const events = () =>
    Array.from({ length: 5 }, () => exampleEvent('job.run.started', account.jobs[0] as never));
  const count = async (sql: string) => (await database.pool.query<{ count: number }>(sql)).rows[0]?.count;
  const dispatcher = await system.start('dispatcher');
  const publisher = createEventPublisher({ queueUrl: system.queueUrl });
  system.onClose(() => publisher.close());
  const done = await publisher.publishMany(events());
  await receiver.waitFor(5);
  await eventually(async () => expect(await count('SELECT count(*)::int FROM logged_attempts')).toBe(5));
  receiver.respondWith({ never: true });
  const inFlight = await publisher.publishMany(events());
  await receiver.waitFor(10);
  const first = dispatcher.stop();
  // Two signals of one kind that nobody has taken yet are one.
  await eventually(async () => expect((await fetch(`${dispatcher.url}/readyz`)).status).toBe(503));
  expect(await dispatcher.stop()).toBe(1);
  await first;
  receiver.respondWith(200);
  await system.start('dispatcher');
  await receiver.waitFor(15, AFTER_LOCKS);
  await eventually(
    async () => expect(await count(`SELECT count(*)::int FROM deliveries WHERE status = 'pending'`)).toBe(0),
    AFTER_LOCKS,
  );
  const arrived = receiver.requests.map(({ headers }) => headers['webhook-id']);
  expect(arrived.sort()).toEqual([...done, ...inFlight, ...inFlight].sort());
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
