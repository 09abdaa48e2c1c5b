import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, ScenarioResult } from './bench.ts';
import { median } from './measure/percentiles.ts';
import type { BenchOptions, ScenarioName } from './options.ts';
import { startProgram } from './programs/program.ts';
import type { RawResult } from './programs/raw.ts';
import type { Progress } from './progress.ts';
import { createRawMeter } from './raw-reference.ts';
import { machineFacts } from './report/machine.ts';
import type { Report } from './report/report.ts';
import { scenarios } from './scenarios/index.ts';
import { startGuard } from './world/guard.ts';
import { Releases } from './world/releases.ts';
import { openWorld, type World } from './world/world.ts';

const FULL = { runs: 3, seconds: 8, rawRuns: 3, rawSeconds: 5, tuneSeconds: 1 };
const QUICK = { runs: 1, seconds: 0.6, rawRuns: 1, rawSeconds: 0.7, tuneSeconds: 0 };

/** Runs the scenarios and answers what they came to. Whatever was started is ended, whatever happens. */
export async function run(options: BenchOptions, progress: Progress, signal: AbortSignal): Promise<Report> {
  const lengths = { ...(options.isQuick ? QUICK : FULL) };
  if (options.runs !== null) lengths.runs = options.runs;
  if (options.seconds !== null) lengths.seconds = options.seconds;
  const startedAt = new Date();
  const startMs = performance.now();
  const releases = new Releases();
  const folder = mkdtempSync(join(tmpdir(), 'runhook-bench-'));
  // Other accounts may pass: PostgreSQL does not run as root.
  chmodSync(folder, 0o711);
  const guard = startGuard(folder);
  releases.add(() => guard.dismiss());
  releases.add(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const voided: string[] = [];
  const results: ScenarioResult[] = [];
  try {
    const receiverProgram = startProgram('receiver');
    releases.add(() => receiverProgram.stop());
    guard.watch(receiverProgram.pid);
    // Whatever is being measured fails without it, and everything is ended in order.
    signal.addEventListener('abort', () => void receiverProgram.stop());
    const receiver = Object.assign(receiverProgram, { port: await receiverProgram.call<number>('listen') });
    const meter = createRawMeter(receiver.port);
    const rawRuns: RawResult[] = [];
    const measureRaw = async (when: string) => {
      for (let index = 1; index <= lengths.rawRuns; index += 1) {
        signal.throwIfAborted();
        progress.say('raw got', `${when}, run ${index} of ${lengths.rawRuns}`);
        rawRuns.push(await meter.measure('got', lengths.rawSeconds * 1_000));
      }
    };
    progress.say('raw got', 'looking for the best concurrency');
    if (lengths.tuneSeconds > 0) await meter.tune(lengths.tuneSeconds * 1_000);
    await measureRaw('before');
    const before = referenceOf(meter, rawRuns);

    let shared: World | undefined;
    const open: Bench['openWorld'] = async (queue, worldOptions = {}) => {
      signal.throwIfAborted();
      return await openWorld({ queue, folder, guard, receiver, ...worldOptions });
    };
    let current = '';
    const bench: Bench = {
      isQuick: options.isQuick,
      stored: options.stored,
      runMs: lengths.seconds * 1_000,
      runs: lengths.runs,
      raw: before,
      async sharedWorld() {
        if (shared === undefined) {
          shared = await open('redis', { management: true });
          releases.add(() => shared?.close());
          await shared.setDispatchers(1);
        }
        return shared;
      },
      openWorld: open,
      measureRaw: (client, runMs) => meter.measure(client, runMs),
      progress(text) {
        signal.throwIfAborted();
        progress.say(current, text);
      },
      voids: (reason) => voided.push(`${current}: ${reason}`),
    };
    for (const name of options.scenarios) {
      current = name;
      bench.progress('');
      try {
        results.push(await runScenario(name, bench));
      } catch (error) {
        signal.throwIfAborted();
        // What the others measured took half an hour: the run is void, and tells what it has.
        voided.push(`${name} failed: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    await measureRaw('after');
    return {
      startedAt: startedAt.toISOString(),
      seconds: (performance.now() - startMs) / 1_000,
      isQuick: options.isQuick,
      lengths,
      machine: machineFacts(),
      raw: {
        ...before,
        runs: rawRuns,
        afterRatePerSecond: median(rawRuns.slice(lengths.rawRuns).map((r) => r.ratePerSecond)),
      },
      voided,
      scenarios: results,
    };
  } finally {
    progress.say('stopping', '');
    await releases.run();
    progress.end();
  }
}

function referenceOf(meter: ReturnType<typeof createRawMeter>, runs: readonly RawResult[]) {
  const sorted = [...runs].sort((a, b) => a.ratePerSecond - b.ratePerSecond);
  return meter.reference([sorted[sorted.length >> 1] as RawResult]);
}

async function runScenario(name: ScenarioName, bench: Bench): Promise<ScenarioResult> {
  return await scenarios[name](bench);
}
