import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import type { OpenLoop } from '../programs/reports.ts';
import { type RunnersWorld, withReporter, withRunnersWorld } from '../world/runners.ts';
import { createReporterSettings, measureDelivered, memoryFigures } from './reported.ts';

const RATE = 300;
const PARTS = 4;
const PART_MS = 300_000;
const QUICK_PART_MS = 2_000;
const SAMPLE_MS = 1_000;
/** The first part fills caches and compiles code, so later parts are compared with the second. */
const REFERENCE_PART = 1;

/** Measures whether the memory of management and of one dispatcher grows during twenty minutes of a constant load. */
export async function soak(bench: Bench): Promise<ScenarioResult> {
  const rows = await withReporter((reporter) =>
    withRunnersWorld(bench, reporter, bench.queue, {}, async (rest) => {
      await rest.world.setDispatchers(1);
      const measured: Row[] = [];
      for (let part = 0; part < PARTS; part += 1) {
        const name = `${RATE}/s, minutes ${(part * PART_MS) / 60_000} to ${((part + 1) * PART_MS) / 60_000}`;
        const reference = measured[REFERENCE_PART]?.figures;
        measured.push(await measureCase(bench, name, () => measurePart(bench, rest, reference), 1));
      }
      return measured;
    }),
  );
  return { name: 'soak', rows };
}

/** Measures mean memory; with its ratio to that of the reference part, if there is one. */
async function measurePart(
  bench: Bench,
  rest: RunnersWorld,
  reference: Row['figures'] | undefined,
): Promise<Measured> {
  const samples: Row['figures'][] = [];
  const timer = setInterval(() => samples.push(memoryFigures(rest.world)), SAMPLE_MS);
  try {
    const durationMs = bench.isQuick ? QUICK_PART_MS : PART_MS;
    const loop: OpenLoop = { ...createReporterSettings(rest, durationMs), ratePerSecond: RATE };
    const { figures, balance } = await measureDelivered(rest, loop, 'openLoop');
    const mean = (name: string) =>
      samples.reduce((sum, sample) => sum + (sample[name] as number), 0) / samples.length;
    const [managementMb, dispatcherMb] = [mean('managementMb'), mean('dispatcherMb')];
    const ratios = reference && {
      managementRatio: managementMb / (reference.managementMb as number),
      dispatcherRatio: dispatcherMb / (reference.dispatcherMb as number),
    };
    const { p50Ms = Number.NaN, p99Ms = Number.NaN } = figures;
    return { figures: { ratePerSecond: RATE, p50Ms, p99Ms, managementMb, dispatcherMb, ...ratios }, balance };
  } finally {
    clearInterval(timer);
  }
}
