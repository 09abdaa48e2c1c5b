import { JOB_RUN_EVENTS } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { cpuBetween } from '../measure/cpu.ts';
import { acceptedBalance } from '../measure/ledger.ts';
import type { Published } from '../programs/publisher.ts';
import { countQueuedEvents } from '../world/queued-events.ts';
import { createWorkload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { HEALTHY_ACCOUNTS } from './throughput.ts';

const PUBLISHED_EVENTS = 40_000;

/** Measures accepted events per second without a dispatcher. */
export async function ingest(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('redis');
  try {
    return { name: 'ingest', rows: [await publisherRow(bench, world)] };
  } finally {
    await world.close();
  }
}

async function publisherRow(bench: Bench, world: World): Promise<Row> {
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
  const count = bench.isQuick ? 2_000 : PUBLISHED_EVENTS;
  const queuedBefore = await queuedEvents(world);
  let queuedAtEnd = 0;
  return await measureCase(
    bench,
    'published directly to the queue, 500 per call',
    async (): Promise<Measured> => {
      const before = world.readCpu();
      const prefill = { count, templates: workload.templates };
      const { intendedMs, acceptedMs } = await world.publisher.call<Published>('prefill', prefill);
      const use = cpuBetween(before, world.readCpu());
      queuedAtEnd += count;
      const seconds = ((acceptedMs.at(-1) ?? 0) - (intendedMs[0] ?? 0)) / 1_000;
      const figures = {
        ratePerSecond: count / seconds,
        publisherCpuMicros: ((use?.groups.publisher ?? 0) * 1_000) / count,
        redisCpuMicros: ((use?.groups.redis ?? 0) * 1_000) / count,
      };
      return {
        figures,
        balance: acceptedBalance(count, queuedAtEnd - ((await queuedEvents(world)) - queuedBefore)),
      };
    },
  );
}

async function queuedEvents({ queueUrl }: World): Promise<number> {
  const queue = createQueueBackend(queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
  try {
    return await countQueuedEvents(queue);
  } finally {
    await queue.close();
  }
}
