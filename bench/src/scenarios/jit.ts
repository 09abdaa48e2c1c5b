import { type Bench, type Measured, measureCases, type ScenarioResult } from '../bench.ts';
import type { Program } from '../programs/program.ts';
import { withReporter, withRunnersWorld } from '../world/runners.ts';
import { withDebianPostgres } from './debian.ts';
import { createReporterSettings, measureDelivered } from './reported.ts';

const EVENTS_PER_SECOND = 100;
const WARM_UP_MS = 3_000;

/**
 * Measures the cost of an event at a low rate on a PostgreSQL with JIT, which is its default, and without. Each run has
 * new services.
 */
export async function jit(bench: Bench): Promise<ScenarioResult> {
  return await withReporter(async (reporter) => {
    const rows = await measureCases(bench, ['JIT off', 'JIT on'], async () => {
      const off = await steady(bench, reporter, 'off');
      const on = await steady(bench, reporter, 'on');
      const cpuRatioToJitOff = (on.figures.cpuMicros as number) / (off.figures.cpuMicros as number);
      return [off, { ...on, figures: { ...on.figures, cpuRatioToJitOff } }];
    });
    return { name: 'jit', rows };
  });
}

async function steady(bench: Bench, reporter: Program, setting: 'on' | 'off'): Promise<Measured> {
  const options = withDebianPostgres(bench, { postgresSettings: { jit: setting } });
  return await withRunnersWorld(bench, reporter, 'redis', options, async (rest) => {
    await rest.world.setDispatchers(1);
    const loop = { ...createReporterSettings(rest, bench.runMs), ratePerSecond: EVENTS_PER_SECOND };
    await measureDelivered(rest, { ...loop, durationMs: Math.min(bench.runMs, WARM_UP_MS) }, 'openLoop');
    return await measureDelivered(rest, loop, 'openLoop');
  });
}
