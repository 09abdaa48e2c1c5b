import { type Bench, type Measured, measureCases, type ScenarioResult } from '../bench.ts';
import { type RunnersWorld, waitUntilDrained, withReporter, withRunnersWorld } from '../world/runners.ts';
import { createClosedLoop, measureDelivered } from './reported.ts';

const EVENTS_PER_CALL = [1, 100] as const;

/** Measures the maximum rate from `POST …/events` to the endpoint, with one event per call and with a hundred. */
export async function eventsPerCall(bench: Bench): Promise<ScenarioResult> {
  return await withReporter((reporter) =>
    withRunnersWorld(bench, reporter, 'redis', {}, async (rest) => {
      await rest.world.setDispatchers(1);
      bench.progress('warming up');
      for (const count of EVENTS_PER_CALL) await deliveredEvents(rest, count, Math.min(2_000, bench.runMs));
      const names = EVENTS_PER_CALL.map((count) => `${count} per call`);
      const rows = await measureCases(bench, names, async () => {
        const one = await deliveredEvents(rest, EVENTS_PER_CALL[0], bench.runMs);
        const many = await deliveredEvents(rest, EVENTS_PER_CALL[1], bench.runMs);
        const rateRatioToSingle =
          (many.figures.ratePerSecond as number) / (one.figures.ratePerSecond as number);
        return [one, { ...many, figures: { ...many.figures, rateRatioToSingle } }];
      });
      return { name: 'events-per-call', rows };
    }),
  );
}

async function deliveredEvents(rest: RunnersWorld, count: number, durationMs: number): Promise<Measured> {
  const measured = await measureDelivered(
    rest,
    { ...createClosedLoop(rest, durationMs), eventsPerCall: count },
    'run',
  );
  await waitUntilDrained(rest);
  return measured;
}
