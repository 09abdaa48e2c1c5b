import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bench, measureCase, type ScenarioResult } from '../bench.ts';
import { type CpuProfile, summarise } from '../profile/summarise.ts';
import { createWorkload } from '../world/workload.ts';
import { drain } from './drain.ts';
import { HEALTHY_ACCOUNTS, warmUp } from './max.ts';

const INTERVAL_MICROS = 250;

/** Where the dispatcher's CPU goes while it delivers as fast as it can. */
export async function profile(bench: Bench): Promise<ScenarioResult> {
  const folder = process.env.BENCH_PROFILE_FOLDER ?? join(tmpdir(), `runhook-profile-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  const world = await bench.openWorld('redis');
  try {
    const flags = ['--cpu-prof', `--cpu-prof-interval=${INTERVAL_MICROS}`, `--cpu-prof-dir=${folder}`];
    await world.setDispatchers(1, flags);
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
    bench.progress('warming up');
    const events = await warmUp(bench, world, workload);
    const row = await measureCase(
      bench,
      'profile',
      () => drain(world, workload, { events: events * 2, raw: bench.raw }),
      1,
    );
    await world.setDispatchers(0);
    const [file] = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
    const summary = summarise(
      JSON.parse(readFileSync(join(folder, file as string), 'utf8')) as CpuProfile,
      row.ledger.delivered,
    );
    return {
      name: 'profile',
      rows: summary.parts
        .filter(({ share }) => share > 0.002)
        .map(({ name, share }) => ({ ...row, case: name, figures: { percent: share * 100 }, runs: [] })),
      notes: summary.hottest.map(({ name, share }) => `${(share * 100).toFixed(1)} %  ${name}`),
    };
  } finally {
    await world.close();
  }
}
