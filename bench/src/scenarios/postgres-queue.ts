import type { Bench, Row, ScenarioResult } from '../bench.ts';
import { latencyRows } from './latency.ts';
import { maxRows } from './max.ts';

const SHARES_OF_MAX = [0.3, 0.5];

/** The embedded default: the queue is in PostgreSQL, which is as `npm start` runs it. */
export async function postgresQueue(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('postgres');
  try {
    const max = await maxRows(bench, world, [1]);
    const maxRate = max[0]?.figures.ratePerSecond ?? 0;
    const loads = [
      { name: '100 events/s', ratePerSecond: 100 },
      { name: '200 events/s', ratePerSecond: 200 },
      ...SHARES_OF_MAX.map((share) => ({
        name: `${share} of its own maximum`,
        ratePerSecond: Math.max(10, Math.round(share * maxRate)),
      })),
    ];
    const rows: Row[] = [...max, ...(await latencyRows(bench, world, loads))];
    return { name: 'postgres-queue', rows };
  } finally {
    await world.close();
  }
}
