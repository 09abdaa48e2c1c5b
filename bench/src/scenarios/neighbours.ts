import { type Bench, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import {
  countDeliveries,
  createWorkload,
  type EndpointKind,
  publishBurst,
  subscriptionIds,
} from '../world/workload.ts';
import { accountInParallel } from './account-in-parallel.ts';
import { openLoop } from './latency.ts';

const SHARE_OF_RAW = 0.3;
const ENDPOINTS = 20;
const UNRESPONSIVE_ENDPOINTS = 1_000;
const BURST_EVENTS = 100_000;

/**
 * Measures healthy endpoints while others never respond, and while an account publishes a burst. Every case begins with
 * new services.
 */
export async function neighbours(bench: Bench): Promise<ScenarioResult> {
  const rows: Row[] = [];
  for (const share of bench.isQuick ? [0, 0.1] : [0, 0.1, 0.5]) {
    const dead = Math.round(ENDPOINTS * share);
    rows.push(await measureNeighbourCase(bench, `${share * 100} % do not respond`, ENDPOINTS - dead, dead));
  }
  if (!bench.isQuick) {
    rows.push(await measureNeighbourCase(bench, '1,000 do not respond', ENDPOINTS, UNRESPONSIVE_ENDPOINTS));
    rows.push(
      await measureNeighbourCase(bench, 'an account has a burst of 100,000', ENDPOINTS, 0, BURST_EVENTS),
    );
  }
  rows.push(...(await accountInParallel(bench)));
  return { name: 'neighbours', rows };
}

async function measureNeighbourCase(
  bench: Bench,
  name: string,
  healthy: number,
  dead: number,
  burstEvents = 0,
): Promise<Row> {
  bench.progress(`${name}, setting up`);
  const world = await bench.openWorld('redis');
  try {
    await world.setDispatchers(1);
    const kinds: EndpointKind[] = [{ behaviour: 'ok', accounts: healthy }];
    const load = {
      ratePerSecond: Math.round(SHARE_OF_RAW * bench.raw.ratePerSecond),
      durationMs: bench.runMs,
      raw: bench.raw,
    };
    const warm = await createWorkload(world, kinds);
    bench.progress(`${name}, warming up`);
    await openLoop(world, warm, { ...load, durationMs: Math.min(bench.runMs, 3_000) });
    const workload = await createWorkload(
      world,
      dead === 0 ? kinds : [...kinds, { behaviour: 'hanging', accounts: dead }],
    );
    if (dead > ENDPOINTS) balanceTemplates(workload, healthy, dead);
    const deadIds = subscriptionIds(workload, (behaviour) => behaviour === 'hanging');
    const burst = burstEvents === 0 ? {} : { addBacklog: () => publishBurst(world, burstEvents, 'ok') };
    return await measureCase(bench, name, async () => {
      const before = await countDeliveries(world, deadIds);
      const measured = await openLoop(world, workload, { ...load, ...burst });
      const after = await countDeliveries(world, deadIds);
      const waiting = after.pending + after.failed - before.pending - before.failed;
      return { ...measured, figures: { ...measured.figures, stillPending: waiting } };
    });
  } finally {
    await world.killDispatchers();
    await world.close();
  }
}

/** Repeats the events of healthy endpoints, so that all healthy ones together get as many as the unresponsive ones. */
function balanceTemplates(
  workload: Awaited<ReturnType<typeof createWorkload>>,
  healthy: number,
  dead: number,
): void {
  const { templates, subscriptionsByTemplate } = workload;
  for (let index = 0; index < dead - healthy; index += 1) {
    templates.push(templates[index % healthy] as (typeof templates)[number]);
    subscriptionsByTemplate.push(
      subscriptionsByTemplate[index % healthy] as (typeof subscriptionsByTemplate)[number],
    );
  }
}
