import { setTimeout as wait } from 'node:timers/promises';
import { type Bench, type Measured, measureCase, type ScenarioResult } from '../bench.ts';
import { balance } from '../measure/ledger.ts';
import { percentile } from '../measure/timing.ts';
import type { Published } from '../programs/publisher.ts';
import { countDeliveries, createWorkload, subscriptionIds, takeArrivals } from '../world/workload.ts';
import type { World } from '../world/world.ts';

const EVENTS_PER_SECOND = 20;
const DURATION_MS = 60_000;
const DURATION_MS_QUICK = 3_000;
/** Events without a first request within this time are missing in the figures. */
const FIRST_REQUEST_MAX_MS = 120_000;
const POLL_MS = 100;

/**
 * Measures when events are first sent to an endpoint that takes 20 ms and fails half of its requests at random. Each
 * run has new services.
 */
export async function halfFails(bench: Bench): Promise<ScenarioResult> {
  const name = `${EVENTS_PER_SECOND}/s to an endpoint that fails half`;
  return { name: 'half-fails', rows: [await measureCase(bench, name, () => firstRequests(bench))] };
}

async function firstRequests(bench: Bench): Promise<Measured> {
  const world = await bench.openWorld('redis');
  try {
    await world.setDispatchers(1);
    const workload = await createWorkload(world, [{ behaviour: 'half-failing', accounts: 1 }]);
    await takeArrivals(world);
    const published = await world.publisher.call<Published>('openLoop', {
      ratePerSecond: EVENTS_PER_SECOND,
      durationMs: bench.isQuick ? DURATION_MS_QUICK : DURATION_MS,
      templates: workload.templates,
    });
    const expected = workload.expected(published);
    await waitUntilSentOnce(world, expected.length);
    // A stopping dispatcher records the attempts that are in flight, so that the log and the endpoint agree.
    await world.setDispatchers(0);
    const { first, ...arrivals } = await takeArrivals(world);
    const { pending } = await countDeliveries(
      world,
      subscriptionIds(workload, () => true),
    );
    const intendedMs = new Map(expected.map((event) => [event.eventId, event.intendedMs]));
    const firstMs = Float64Array.from(
      first,
      ({ eventId, atMs }) => atMs - (intendedMs.get(eventId) ?? 0),
    ).sort();
    return {
      figures: {
        ratePerSecond: EVENTS_PER_SECOND,
        firstP50Ms: percentile(firstMs, 0.5),
        firstP95Ms: percentile(firstMs, 0.95),
        sentOncePercent: (100 * first.length) / expected.length,
        stillPending: pending,
      },
      balance: balance(expected, arrivals, { pending }),
    };
  } finally {
    await world.close();
  }
}

async function waitUntilSentOnce({ receiver }: World, count: number): Promise<void> {
  for (const deadline = Date.now() + FIRST_REQUEST_MAX_MS; Date.now() < deadline; await wait(POLL_MS)) {
    if ((await receiver.call<number>('firstCount')) >= count) return;
  }
}
