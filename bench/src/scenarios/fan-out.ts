import { type Bench, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { createWorkload } from '../world/workload.ts';
import { drain } from './drain.ts';

const SUBSCRIPTIONS = [1, 10, 1_000];
const ACCOUNTS_MAX = 20;

/** One event to so many subscriptions, each at an endpoint of its own. */
export async function fanOut(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  await world.setDispatchers(1);
  const rows: Row[] = [];
  for (const subscriptionsPerAccount of SUBSCRIPTIONS) {
    const accounts = Math.max(1, Math.floor(ACCOUNTS_MAX / subscriptionsPerAccount));
    const name = `1 event, ${subscriptionsPerAccount} subscription${subscriptionsPerAccount === 1 ? '' : 's'}`;
    bench.progress(`${name}, setting up`);
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts, subscriptionsPerAccount }]);
    const deliveries = (bench.raw.ratePerSecond * bench.runMs) / 1_000;
    const events = Math.max(2, Math.round(deliveries / subscriptionsPerAccount));
    bench.progress(`${name}, warming up`);
    await drain(world, workload, { events: Math.ceil(events / 4), raw: bench.raw });
    rows.push(await measureCase(bench, name, () => drain(world, workload, { events, raw: bench.raw })));
  }
  return { name: 'fan-out', rows };
}
