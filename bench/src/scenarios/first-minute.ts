import { type Bench, measureCases, type ScenarioResult } from '../bench.ts';
import { inRunnersWorld, type RunnersWorld, untilDrained, withReporter } from '../world/runners.ts';
import { onDebian } from './debian.ts';
import { closedLoop, delivered, reporterSettings } from './reported.ts';

const EVENTS_PER_SECOND = 100;
const MINUTE_MS = 60_000;
const EVENTS_BETWEEN = 20_000;
const EVENTS_BETWEEN_QUICK = 500;
/** Exceeds the duration of the calls. */
const CALLS_MAX_MS = 120_000;

/** Measures the latency of new services with one webhook, and of the same services after 20,000 events. */
export async function firstMinute(bench: Bench): Promise<ScenarioResult> {
  const durationMs = bench.isQuick ? bench.runMs : MINUTE_MS;
  const callsMax = bench.isQuick ? EVENTS_BETWEEN_QUICK : EVENTS_BETWEEN;
  const steady = (rest: RunnersWorld) => {
    const loop = { ...reporterSettings(rest, durationMs), ratePerSecond: EVENTS_PER_SECOND };
    return delivered(rest, loop, 'openLoop');
  };
  return await withReporter(async (reporter) => {
    const rows = await measureCases(bench, ['in the first minute', 'after 20,000 events'], () =>
      inRunnersWorld(bench, reporter, 'redis', onDebian(bench, { accounts: 1 }), async (rest) => {
        await rest.world.setDispatchers(1);
        const first = await steady(rest);
        await delivered(rest, { ...closedLoop(rest, CALLS_MAX_MS), callsMax }, 'run');
        await untilDrained(rest);
        const later = await steady(rest);
        const p99OverLater = (first.figures.p99Ms as number) / (later.figures.p99Ms as number);
        return [{ ...first, figures: { ...first.figures, p99OverLater } }, later];
      }),
    );
    return { name: 'first-minute', rows };
  });
}
