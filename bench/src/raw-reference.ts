import { createHmacSecret, type JobRunEvent } from '@runhook/contract';
import { exampleEvent } from '@runhook/testing';
import type { RawReference } from './bench.ts';
import { type Program, startProgram } from './programs/program.ts';
import type { RawClient, RawResult, RawRun } from './programs/raw.ts';

const CONCURRENCIES = [16, 32, 64, 128];
const ENDPOINTS = 20;
const EVENTS = 1_000;

/** The flags of the dispatcher's own start command: raw got gets the same heap. */
const NODE_ARGUMENTS = ['--max-semi-space-size=64'];

/** Measures got by itself. Each call is a process of its own, as a caller's would be. */
export interface RawMeter {
  /** Tries concurrencies and keeps to the best. */
  tune(runMs: number): Promise<void>;
  measure(client: RawClient, runMs: number): Promise<RawResult>;
  reference(results: readonly RawResult[]): RawReference;
}

export function createRawMeter(receiverPort: number): RawMeter {
  const urls = Array.from(
    { length: ENDPOINTS },
    (_, index) => `http://127.200.0.${index + 1}:${receiverPort}/raw/${index}`,
  );
  const events = Array.from({ length: EVENTS }, exampleOf);
  const hmacSecret = createHmacSecret();
  let concurrency = 64;

  async function run(client: RawClient, runMs: number, warmUpMs: number): Promise<RawResult> {
    const program: Program = startProgram('raw', NODE_ARGUMENTS);
    try {
      const rawRun: RawRun = { client, urls, events, hmacSecret, durationMs: warmUpMs, concurrency };
      await program.call('run', rawRun);
      return await program.call<RawResult>('run', { ...rawRun, durationMs: runMs });
    } finally {
      await program.stop();
    }
  }

  return {
    async tune(runMs) {
      let best = 0;
      let bestConcurrency = concurrency;
      for (const candidate of CONCURRENCIES) {
        concurrency = candidate;
        const { ratePerSecond } = await run('got', runMs, runMs);
        if (ratePerSecond <= best) continue;
        best = ratePerSecond;
        bestConcurrency = candidate;
      }
      concurrency = bestConcurrency;
    },
    measure: (client, runMs) => run(client, runMs, runMs / 2),
    reference: (results) => ({
      ratePerSecond: mean(results.map(({ ratePerSecond }) => ratePerSecond)),
      cpuMicrosPerRequest: mean(results.map(({ cpuMicrosPerRequest }) => cpuMicrosPerRequest)),
      concurrency,
    }),
  };
}

function exampleOf(): JobRunEvent {
  return exampleEvent('job.run.completed', {
    id: 1,
    account_id: 1,
    name: 'Nightly build',
    project_id: 1,
    project_name: 'Warehouse',
    environment_id: 1,
    environment_name: 'Production',
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
