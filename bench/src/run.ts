import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHmacSecret } from '@runhook/contract';
import { readStartCommand } from '@runhook/embedded';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import type { Alternatives, Bench, RawConditions, RawReference, Row, ScenarioResult } from './bench.ts';
import { median } from './measure/timing.ts';
import type { BenchOptions } from './options.ts';
import { type Program, startProgram } from './programs/program.ts';
import type { RawResult, RawRun } from './programs/raw.ts';
import { machineFacts, type Report } from './report/targets.ts';
import { scenarios } from './scenarios/index.ts';
import { CleanupStack, openWorld, startGuard, type World } from './world/world.ts';

const FULL = { runs: 3, seconds: 8, rawRuns: 3, rawSeconds: 5, tuneSeconds: 1 };
const QUICK = { runs: 1, seconds: 0.6, rawRuns: 1, rawSeconds: 0.7, tuneSeconds: 0 };

const NO_ALTERNATIVES: Alternatives = {
  fetchOldestNode: () => Promise.reject(new Error('no other Node')),
  debianPostgres: null,
};

/**
 * Runs the scenarios and returns their results; a run that is stopped between them returns the results so far and is
 * void. All processes that were started are ended in any case.
 */
export async function run(
  options: BenchOptions,
  progress: Progress,
  signal: AbortSignal,
  scenarioTable: typeof scenarios = scenarios,
  alternatives: Alternatives = NO_ALTERNATIVES,
): Promise<Report> {
  const lengths = { ...(options.isQuick ? QUICK : FULL) };
  if (options.runs !== null) lengths.runs = options.runs;
  if (options.seconds !== null) lengths.seconds = options.seconds;
  const startedAt = new Date();
  const startMs = performance.now();
  const cleanup = new CleanupStack();
  try {
    const { folder, guard, receiver } = await openEnvironment(cleanup, signal);
    const meter = createRawMeter(receiver.port);
    const rawRuns: RawResult[] = [];
    const measureRaw = async (when: string) => {
      for (let index = 1; index <= lengths.rawRuns; index += 1) {
        signal.throwIfAborted();
        progress.update('raw got', `${when}, run ${index} of ${lengths.rawRuns}`);
        rawRuns.push(await meter.measure({ durationMs: lengths.rawSeconds * 1_000 }));
      }
    };
    progress.update('raw got', 'looking for the best concurrency');
    if (lengths.tuneSeconds > 0) await meter.tune(lengths.tuneSeconds * 1_000);
    await measureRaw('before');
    const raw = selectReference(meter, rawRuns);

    const open: Bench['openWorld'] = async (queue, worldOptions = {}) => {
      signal.throwIfAborted();
      return await openWorld({ queue, folder, guard, receiver, ...worldOptions });
    };
    const measuring = {
      options,
      scenarioTable,
      lengths,
      raw,
      meter,
      receiver,
      open,
      cleanup,
      progress,
      signal,
      alternatives,
    };
    const { results, voided } = await runScenarios(measuring);
    if (!signal.aborted) await measureRaw('after');
    return {
      startedAt: startedAt.toISOString(),
      seconds: (performance.now() - startMs) / 1_000,
      isQuick: options.isQuick,
      lengths,
      machine: machineFacts(),
      raw: {
        ...raw,
        runs: rawRuns,
        afterRatePerSecond: signal.aborted
          ? Number.NaN
          : median(rawRuns.slice(lengths.rawRuns).map((r) => r.ratePerSecond)),
      },
      voided,
      scenarios: results,
    };
  } finally {
    progress.update('stopping', '');
    await cleanup.run();
    progress.end();
  }
}

/**
 * Opens the resources that all measurements share: a folder, the receiver, and a guard that ends remaining processes if
 * the benchmark is killed.
 */
async function openEnvironment(cleanup: CleanupStack, signal: AbortSignal) {
  const folder = mkdtempSync(join(tmpdir(), 'runhook-bench-'));
  // Other accounts must be able to pass, because PostgreSQL does not run as root.
  chmodSync(folder, 0o711);
  const guard = startGuard(folder);
  cleanup.add(() => guard.dismiss());
  cleanup.add(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const program = startProgram('receiver');
  cleanup.add(() => program.stop());
  guard.watch(program.pid);
  // Stopping the receiver makes the current measurement fail, after which everything is ended in order.
  signal.addEventListener('abort', () => void program.stop());
  const receiver = Object.assign(program, { port: await program.call<number>('listen') });
  return { folder, guard, receiver };
}

async function runScenarios(measuring: {
  options: BenchOptions;
  scenarioTable: typeof scenarios;
  lengths: { runs: number; seconds: number };
  raw: RawReference;
  meter: RawMeter;
  receiver: Bench['receiver'];
  open: Bench['openWorld'];
  cleanup: CleanupStack;
  progress: Progress;
  signal: AbortSignal;
  alternatives: Alternatives;
}): Promise<{ results: ScenarioResult[]; voided: string[] }> {
  const {
    options,
    scenarioTable,
    lengths,
    raw,
    meter,
    receiver,
    open,
    cleanup,
    progress,
    signal,
    alternatives,
  } = measuring;
  const results: ScenarioResult[] = [];
  const voided: string[] = [];
  let shared: World | undefined;
  let current = '';
  let rows: Row[] = [];
  const bench: Bench = {
    isQuick: options.isQuick,
    stored: options.stored,
    queue: options.queue,
    runMs: lengths.seconds * 1_000,
    runs: lengths.runs,
    raw,
    receiver,
    async sharedWorld() {
      if (shared === undefined) {
        shared = await open('redis', { management: true });
        cleanup.add(() => shared?.close());
        await shared.setDispatchers(1);
      }
      return shared;
    },
    openWorld: open,
    measureRaw: (conditions) => meter.measure({ durationMs: lengths.seconds * 1_000, ...conditions }),
    alternatives,
    progress(text) {
      signal.throwIfAborted();
      progress.update(current, text);
    },
    addRow: (row) => void rows.push(row),
    markVoid: (reason) => voided.push(`${current}: ${reason}`),
  };
  for (const name of options.scenarios) {
    current = name;
    rows = [];
    try {
      bench.progress('');
      results.push(await scenarioTable[name](bench));
    } catch (error) {
      if (signal.aborted) {
        results.push({ name, rows });
        voided.push((signal.reason as Error).message);
        break;
      }
      // Continues after a failed scenario, because the others took half an hour: the run is void, but their results are
      // reported.
      voided.push(`${name} failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { results, voided };
}

function selectReference(meter: RawMeter, runs: readonly RawResult[]) {
  const sorted = [...runs].sort((a, b) => a.ratePerSecond - b.ratePerSecond);
  return meter.reference([sorted[sorted.length >> 1] as RawResult]);
}

/** Shows progress as a line that is rewritten on a terminal, or as one line per step elsewhere. */
export interface Progress {
  update(what: string, detail: string): void;
  end(): void;
}

export function createProgress(stream: NodeJS.WriteStream): Progress {
  const startMs = performance.now();
  return {
    update(what, detail) {
      const seconds = Math.round((performance.now() - startMs) / 1_000);
      const clock = `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
      const line = `${clock}  ${what}${detail === '' ? '' : `: ${detail}`}`;
      if (stream.isTTY) stream.write(`\r\u001b[2K${line.slice(0, stream.columns - 1)}`);
      else stream.write(`${line}\n`);
    },
    end() {
      if (stream.isTTY) stream.write('\r\u001b[2K');
    },
  };
}

const CONCURRENCIES = [16, 32, 64, 128];
const ENDPOINTS = 20;
const EVENTS = 1_000;

/** The flags of the dispatcher's start command, so that raw got has the same heap. */
const NODE_ARGUMENTS = readStartCommand('dispatcher').nodeArguments;

/**
 * Duration of the warm-up of raw got: code that has not been compiled yet is slow, and the services are warmed up as
 * well, also in a quick run.
 */
const WARM_UP_MS = 2_000;

/** Measures got without a service. Each call uses a new process. */
export interface RawMeter {
  /** Tries several concurrencies and uses the best. */
  tune(runMs: number): Promise<void>;
  measure(conditions: RawConditions & { durationMs: number }): Promise<RawResult>;
  reference(results: readonly RawResult[]): RawReference;
}

function createRawMeter(receiverPort: number): RawMeter {
  const urls = Array.from(
    { length: ENDPOINTS },
    (_, index) => `http://127.200.0.${index + 1}:${receiverPort}/raw/${index}`,
  );
  const events = Array.from({ length: EVENTS }, () => exampleEvent('job.run.completed', EXAMPLE_JOB));
  const hmacSecret = createHmacSecret();
  let concurrency = 64;

  async function run(runMs: number, warmUpMs: number, endpoints = ENDPOINTS): Promise<RawResult> {
    const program: Program = startProgram('raw', NODE_ARGUMENTS);
    try {
      const rawRun: RawRun = {
        urls: urls.slice(0, endpoints),
        events,
        hmacSecret,
        durationMs: warmUpMs,
        concurrency,
      };
      if (warmUpMs > 0) await program.call('run', rawRun);
      return await program.call<RawResult>('run', { ...rawRun, durationMs: runMs });
    } finally {
      await program.stop();
    }
  }

  return {
    async tune(runMs) {
      let bestRate = 0;
      let bestConcurrency = concurrency;
      for (const candidate of CONCURRENCIES) {
        concurrency = candidate;
        const { ratePerSecond } = await run(runMs, runMs);
        if (ratePerSecond <= bestRate) continue;
        bestRate = ratePerSecond;
        bestConcurrency = candidate;
      }
      concurrency = bestConcurrency;
    },
    measure: ({ durationMs, endpoints, isCold = false }) =>
      run(durationMs, isCold ? 0 : Math.max(WARM_UP_MS, durationMs / 2), endpoints),
    reference: (results) => ({
      ratePerSecond: mean(results.map(({ ratePerSecond }) => ratePerSecond)),
      cpuMicrosPerRequest: mean(results.map(({ cpuMicrosPerRequest }) => cpuMicrosPerRequest)),
      concurrency,
    }),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
