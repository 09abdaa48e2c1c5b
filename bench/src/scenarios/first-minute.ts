import { type Bench, measureCases, type ScenarioResult } from '../bench.ts';
import { type RunnersWorld, waitUntilDrained, withReporter, withRunnersWorld } from '../world/runners.ts';
import { withDebianPostgres } from './debian.ts';
import { createClosedLoop, createReporterSettings, measureDelivered } from './reported.ts';

const EVENTS_PER_SECOND = 100;
const MINUTE_MS = 60_000;
const EVENTS_BEFORE_REPEAT = 20_000;
const EVENTS_BEFORE_REPEAT_QUICK = 500;
/** Timeout of the calls between the two measurements, which end earlier. */
const CALLS_MAX_MS = 120_000;

/**
 * Measures the latency from a runner's REST call to the endpoint with one webhook: in the first minute of newly started
 * services, and again after 20,000 events.
 */
export async function firstMinute(bench: Bench): Promise<ScenarioResult> {
  const durationMs = bench.isQuick ? bench.runMs : MINUTE_MS;
  const callsMax = bench.isQuick ? EVENTS_BEFORE_REPEAT_QUICK : EVENTS_BEFORE_REPEAT;
  const steady = (rest: RunnersWorld) => {
    const loop = { ...createReporterSettings(rest, durationMs), ratePerSecond: EVENTS_PER_SECOND };
    return measureDelivered(rest, loop, 'openLoop');
  };
  return await withReporter(async (reporter) => {
    const rows = await measureCases(bench, ['in the first minute', 'after 20,000 events'], () =>
      withRunnersWorld(bench, reporter, 'redis', withDebianPostgres(bench, { accounts: 1 }), async (rest) => {
        await rest.world.setDispatchers(1);
        const first = await steady(rest);
        await measureDelivered(rest, { ...createClosedLoop(rest, CALLS_MAX_MS), callsMax }, 'run');
        await waitUntilDrained(rest);
        const later = await steady(rest);
        const p99RatioToLater = (first.figures.p99Ms as number) / (later.figures.p99Ms as number);
        return [{ ...first, figures: { ...first.figures, p99RatioToLater } }, later];
      }),
    );
    return { name: 'first-minute', rows };
  });
}
