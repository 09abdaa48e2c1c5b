import { type Bench, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { createWorkload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { HEALTHY_ACCOUNTS, warmUp } from './max.ts';
import { openLoop } from './open-loop.ts';

const SHARES_OF_RAW = [0.3, 0.5, 0.67];
const LOW_RATE = 100;

/** From an event's intended time to its arrival at the endpoint, at loads that are shares of what raw got can do. */
export async function latency(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  await world.setDispatchers(1);
  const loads = [
    { name: `${LOW_RATE} events/s`, ratePerSecond: LOW_RATE },
    ...SHARES_OF_RAW.map((share) => ({
      name: `${share} of raw got`,
      ratePerSecond: Math.round(share * bench.raw.ratePerSecond),
    })),
  ];
  return { name: 'latency', rows: await latencyRows(bench, world, loads) };
}

export async function latencyRows(
  bench: Bench,
  world: World,
  loads: readonly { name: string; ratePerSecond: number }[],
): Promise<Row[]> {
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
  bench.progress('warming up');
  await warmUp(bench, world, workload);
  const rows: Row[] = [];
  for (const { name, ratePerSecond } of loads) {
    const load = { ratePerSecond, durationMs: bench.runMs, raw: bench.raw };
    rows.push(await measureCase(bench, name, () => openLoop(world, workload, load)));
  }
  return rows;
}
