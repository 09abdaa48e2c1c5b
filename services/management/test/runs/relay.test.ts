import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JobRunEvent } from '@runhook/contract';
import type { EventQueue } from '@runhook/queue';
import { createTestQueueUrl, eventually, queueBackends } from '@runhook/testing';
import type { Relay } from '../../src/runs/relay.ts';
import { openRelayBench, type RelayBench } from './relay-bench.ts';
import { startRunsServer } from './runs-server.ts';

let bench: RelayBench;
beforeEach(async () => {
  bench = await openRelayBench();
});
afterEach(() => bench.close());

const idsOf = (events: readonly { eventId?: string | undefined }[]) => events.map(({ eventId }) => eventId);

const byId = <Event extends { eventId?: string | undefined }>(events: readonly Event[]) =>
  [...events].sort((a, b) => ((a.eventId ?? '') < (b.eventId ?? '') ? -1 : 1));

/** The real queue, with a note of every event that was handed to it. */
function recording(queue: EventQueue) {
  const handed: string[] = [];
  const batchSizes: number[] = [];
  return {
    handed,
    batchSizes,
    add: async (events: Parameters<EventQueue['add']>[0]) => {
      await queue.add(events);
      handed.push(...events.map(({ eventId }) => eventId));
      batchSizes.push(events.length);
    },
  };
}

describe.each(queueBackends())('the relay, with the queue on $name', (backend) => {
  let queueUrl: string;
  beforeEach(async () => {
    queueUrl = await createTestQueueUrl(backend, bench.databaseUrl);
  });

  test('moves whole events in the order of their commits, at most 500 at a time', async () => {
    const committed: JobRunEvent[] = [];
    for (const count of [700, 1, 2, 497]) committed.push(...(await bench.commit(count)));
    const queue = recording(bench.openQueue(queueUrl));
    bench.startRelay(queue);
    await eventually(async () => expect(await bench.outboxCount()).toBe(0));
    expect(queue.handed).toEqual(idsOf(committed));
    expect(queue.batchSizes).toEqual([500, 500, 200]);
    // How many of them stand behind for their account's burst limit depends on how long adding them took.
    expect(byId(await bench.queued(queueUrl))).toEqual(byId(committed));
  });

  test('a commit that wakes it is in the queue at once, and under load every event is handed over once', async () => {
    const queue = recording(bench.openQueue(queueUrl));
    const relay = bench.startRelay(queue);
    const committed = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const own: JobRunEvent[] = [];
        for (let round = 0; round < 25; round++) {
          own.push(...(await bench.commit(2)));
          relay.wake();
        }
        return idsOf(own);
      }),
    );
    await eventually(async () => expect(await relay.backlog()).toBe(0));
    expect([...queue.handed].sort()).toEqual(committed.flat().sort());
    for (const own of committed) {
      expect(queue.handed.filter((id) => own.includes(id))).toEqual(own);
    }
  });

  test('two relays at once hand over every event once, in order', async () => {
    const handed: string[] = [];
    const relays = [bench.openQueue(queueUrl), bench.openQueue(queueUrl)].map((queue) =>
      bench.startRelay({
        add: async (events) => {
          await queue.add(events);
          handed.push(...events.map(({ eventId }) => eventId));
        },
      }),
    );
    const committed: JobRunEvent[] = [];
    for (let round = 0; round < 60; round++) {
      committed.push(...(await bench.commit(5)));
      for (const relay of relays) relay.wake();
    }
    await eventually(async () => expect(await bench.outboxCount()).toBe(0));
    expect(handed).toEqual(idsOf(committed));
    expect(idsOf(await bench.queued(queueUrl))).toEqual(idsOf(committed));
  });

  test('a crash after the queue took a batch sends it again under the same ids, and the queue holds it once', async () => {
    const committed = await bench.commit(3);
    const queue = bench.openQueue(queueUrl);
    let crashes = 1;
    bench.startRelay({
      add: async (events) => {
        await queue.add(events);
        if (crashes-- > 0) throw new Error('crashed before the rows were deleted');
      },
    });
    await eventually(async () => expect(await bench.outboxCount()).toBe(0));
    expect(crashes).toBe(-1);
    expect(idsOf(await bench.queued(queueUrl))).toEqual(idsOf(committed));
  });

  test('what a runner reports over HTTP is in the queue without a poll', async () => {
    let relay: Relay | undefined;
    const server = await startRunsServer({ relay: { wake: () => relay?.wake() } });
    try {
      relay = bench.startRelay(bench.openQueue(queueUrl), { pool: server.database.pool });
      const job = await server.createJob('Nightly');
      await server.call('POST', '/runs/', { job_id: job.id, run_id: 5, engine_version: '1.9.0' });
      await server.call('POST', '/runs/5/finish/', { status: 'errored' });
      await server.call('POST', '/runs/5/artifacts/');
      const queued = await eventually(async () => {
        const events = await bench.queued(queueUrl);
        expect(events).toHaveLength(3);
        return events;
      });
      expect(queued.map(({ eventType, data }) => [eventType, data.runId, data.runStatusCode])).toEqual([
        ['job.run.started', '5', 3],
        ['job.run.errored', '5', 20],
        ['job.run.completed', '5', 20],
      ]);
      // What the queue has is deleted after that.
      await eventually(async () => expect((await server.written()).outbox).toBe(0));
    } finally {
      await relay?.stop();
      await server.close();
    }
  });
});

/** A queue's door without a queue behind it: what comes in is noted. */
function collecting() {
  const handed: string[] = [];
  return {
    handed,
    add: async (events: Parameters<EventQueue['add']>[0]) => {
      handed.push(...events.map(({ eventId }) => eventId));
    },
  };
}

describe('the relay', () => {
  test('finds by itself what another process committed', async () => {
    const { add, handed } = collecting();
    bench.startRelay({ add }, { pollIntervalMs: 50 });
    const first = await bench.commit(1);
    await eventually(() => expect(handed).toEqual(idsOf(first)));
    const second = await bench.commit(1);
    await eventually(() => expect(handed).toEqual(idsOf([...first, ...second])));
  });

  test('takes a row that was committed later with a smaller sequence', async () => {
    const { add, handed } = collecting();
    let commitSlow = () => {};
    let inserted = () => {};
    const slowInserted = new Promise<void>((resolve) => {
      inserted = resolve;
    });
    const slowCommit = bench.commit(1, () => {
      inserted();
      return new Promise((resolve) => {
        commitSlow = resolve;
      });
    });
    await slowInserted;
    const quick = await bench.commit(1);
    const relay = bench.startRelay({ add });
    await eventually(async () => expect(await relay.backlog()).toBe(0));
    expect(handed).toEqual(idsOf(quick));
    commitSlow();
    const slow = await slowCommit;
    relay.wake();
    await eventually(async () => expect(await relay.backlog()).toBe(0));
    expect(handed).toEqual(idsOf([...quick, ...slow]));
  });

  test('an event that retention removed before it was sent stops nothing', async () => {
    const [gone, ...kept] = await bench.commit(3);
    await bench.database.pool.query('DELETE FROM events WHERE id = $1', [gone?.eventId]);
    const { add, handed } = collecting();
    bench.startRelay({ add });
    await eventually(async () => expect(await bench.outboxCount()).toBe(0));
    expect(handed).toEqual(idsOf(kept));
    expect(bench.logged).toEqual([
      { level: 'warn', message: 'events left with retention before the queue took them' },
    ]);
  });

  test('stop lets the batch in hand end and begins no other', async () => {
    await bench.commit(501);
    let enter = () => {};
    let leave = () => {};
    const entered = new Promise<void>((resolve) => {
      enter = resolve;
    });
    const gate = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const relay = bench.startRelay({
      add: async () => {
        enter();
        await gate;
      },
    });
    await entered;
    const stopped = relay.stop();
    relay.wake();
    leave();
    await stopped;
    expect(await bench.outboxCount()).toBe(1);
    expect(bench.database.pool.idleCount).toBe(bench.database.pool.totalCount);
  });

  test('looks at the database once more for all that woke it during a look', async () => {
    let looks = 0;
    bench.database.pool.on('acquire', () => looks++);
    const relay = bench.startRelay({ add: async () => {} });
    for (const after of [2, 3]) {
      for (let times = 0; times < 1_000; times++) relay.wake();
      await eventually(() => expect(looks).toBe(after));
    }
    await relay.stop();
    expect(looks).toBe(3);
  });
});
