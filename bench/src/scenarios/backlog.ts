import { createId, deliveryIdFor, JOB_RUN_EVENTS } from '@runhook/contract';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import { Redis } from 'ioredis';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { balance } from '../measure/ledger.ts';
import type { Published } from '../programs/publisher.ts';
import { countQueuedEvents } from '../world/queued-events.ts';
import { createWorkload, takeArrivals, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { drainFigures, HEALTHY_ACCOUNTS, measureMiddle, warmUp } from './throughput.ts';

const BYTES_SAMPLE = 50_000;

/** Measures the rate at different queue lengths, and the memory of a queued delivery in Redis. */
export async function backlog(bench: Bench): Promise<ScenarioResult> {
  const sizes = bench.isQuick ? [0, 5_000] : [0, 100_000, 1_000_000];
  const rows: Row[] = [];
  const world = await bench.openWorld('redis');
  try {
    await world.setDispatchers(1);
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
    bench.progress('warming up');
    const events = await warmUp(bench, world, workload);
    rows.push(await bytesRow(bench, world));
    for (const size of sizes) {
      const name = `${size.toLocaleString('en-GB')} queued`;
      bench.progress(`${name}, queueing`);
      rows.push(await measureWithBacklog(bench, world, workload, { name, size, events }));
    }
  } finally {
    await world.close();
  }
  return { name: 'backlog', rows };
}

/** Measures events in front of a backlog: each measurement pauses the queue before the backlog is reached. */
async function measureWithBacklog(
  bench: Bench,
  world: World,
  workload: Workload,
  { name, size, events }: { name: string; size: number; events: number },
): Promise<Row> {
  const queue = createQueueBackend(world.queueUrl).createQueue(JOB_RUN_EVENTS);
  try {
    await queue.pause();
    const count = events * bench.runs;
    const published = await world.publisher.call<Published>('prefill', {
      count: count + size,
      templates: workload.templates,
    });
    await settleRedis(world);
    const expected = workload.expected(published);
    let arrivedCount = 0;
    const row = await measureCase(bench, name, async (): Promise<Measured> => {
      await takeArrivals(world);
      await queue.resume();
      const middle = await measureMiddle(world, events);
      await queue.pause();
      await waitUntilIdle(queue);
      const arrivals = await takeArrivals(world);
      const arrived = arrivals.eventIds.length;
      const arrivedIds = new Set(arrivals.eventIds);
      const expectedInRun = expected.filter(({ eventId }) => arrivedIds.has(eventId));
      arrivedCount += arrived;
      return { figures: drainFigures(middle, bench.raw), balance: balance(expectedInRun, arrivals) };
    });
    // The ledger of all runs: events that did not arrive must still be in the queue.
    const stillQueued = await countQueuedEvents(queue);
    if (arrivedCount + stillQueued !== expected.length) {
      bench.markVoid(
        `${name}: ${expected.length} published, ${arrivedCount} arrived, ${stillQueued} still queued`,
      );
    }
    row.ledger.published = expected.length;
    row.ledger.explained = stillQueued;
    return row;
  } finally {
    await queue.drain();
    await queue.resume();
    await queue.close();
  }
}

async function waitUntilIdle(queue: { getActiveCount(): Promise<number> }): Promise<void> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; ) {
    if ((await queue.getActiveCount()) === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until Redis, which rewrites its append-only file after the queue was filled, has ended that. */
async function settleRedis(world: World): Promise<void> {
  const redis = new Redis(world.queueUrl);
  try {
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; ) {
      const info = await redis.info('persistence');
      if (/aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info)) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    redis.disconnect();
  }
}

async function bytesRow(bench: Bench, world: World): Promise<Row> {
  bench.progress('Redis bytes per queued delivery');
  const redis = new Redis(world.queueUrl);
  const queue = openDeliveryQueue(createQueueBackend(world.queueUrl), () => undefined);
  const used = async () => Number(/^used_memory_dataset:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  const count = bench.isQuick ? 5_000 : BYTES_SAMPLE;
  try {
    const subscriptionId = createId('subscription');
    const before = await used();
    const deliveries = Array.from({ length: count }, () => ({
      deliveryId: deliveryIdFor(createId('event'), subscriptionId),
      cycle: 0,
      accountId: 1,
      delayMs: 3_600_000,
      attemptsLeft: 5,
    }));
    await queue.add(deliveries);
    const bytes = ((await used()) - before) / count;
    const ledger = { published: count, delivered: 0, explained: count, repeated: 0, missing: 0 };
    return {
      case: 'a queued delivery',
      figures: { redisBytes: bytes },
      runs: [{ redisBytes: bytes }],
      ledger,
    };
  } finally {
    await redis.flushall();
    redis.disconnect();
    await queue.close();
  }
}
