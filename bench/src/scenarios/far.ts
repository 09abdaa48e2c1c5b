import { type Bench, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { createWorkload } from '../world/workload.ts';
import { HEALTHY_ACCOUNTS } from './max.ts';
import { openLoop } from './open-loop.ts';

const DELAYS_MS = [5, 100, 1_000];
const SHARE_OF_RAW = 0.3;

/** Endpoints that take their time to answer: what waits for them must not hold up what could be sent. */
export async function far(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  await world.setDispatchers(1);
  const rows: Row[] = [];
  for (const delayMs of DELAYS_MS) {
    const name = `answer after ${delayMs} ms`;
    const workload = await createWorkload(world, [
      { behaviour: `after-${delayMs}`, accounts: HEALTHY_ACCOUNTS },
    ]);
    const load = {
      ratePerSecond: Math.round(SHARE_OF_RAW * bench.raw.ratePerSecond),
      durationMs: bench.runMs,
      raw: bench.raw,
    };
    bench.progress(`${name}, warming up`);
    await openLoop(world, workload, { ...load, durationMs: Math.min(bench.runMs, 2_000) });
    rows.push(await measureCase(bench, name, () => openLoop(world, workload, load)));
  }
  return { name: 'far', rows };
}
