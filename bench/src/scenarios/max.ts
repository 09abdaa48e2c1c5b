import { type Bench, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { createWorkload, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { drain } from './drain.ts';

export const HEALTHY_ACCOUNTS = 20;

/** What one and two dispatchers can deliver a second. */
export async function max(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  return { name: 'max', rows: await maxRows(bench, world, [1, 2]) };
}

export async function maxRows(
  bench: Bench,
  world: World,
  dispatcherCounts: readonly number[],
): Promise<Row[]> {
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
  const rows: Row[] = [];
  for (const count of dispatcherCounts) {
    const name = `${count} dispatcher${count === 1 ? '' : 's'}`;
    await world.setDispatchers(count);
    bench.progress(`${name}, warming up`);
    let events = await warmUp(bench, world, workload);
    rows.push(
      await measureCase(bench, name, async () => {
        const measured = await drain(world, workload, { events, raw: bench.raw });
        events = eventsFor(bench, measured.figures.ratePerSecond as number);
        return measured;
      }),
    );
  }
  await world.setDispatchers(1);
  return rows;
}

/** Code that has not run yet is slow, on every dispatcher. Answers how many events one measurement needs. */
export async function warmUp(bench: Bench, world: World, workload: Workload): Promise<number> {
  const events = Math.round(
    Math.min(bench.raw.ratePerSecond * 3, (bench.raw.ratePerSecond * bench.runMs) / 1_000),
  );
  const { figures } = await drain(world, workload, { events, raw: bench.raw });
  return eventsFor(bench, figures.ratePerSecond as number);
}

function eventsFor(bench: Bench, ratePerSecond: number): number {
  return Math.max(500, Math.round((ratePerSecond * bench.runMs) / 1_000));
}
