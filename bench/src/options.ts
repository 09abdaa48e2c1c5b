import { parseArgs } from 'node:util';
import type { QueueName } from './world/world.ts';

export const SCENARIO_NAMES = [
  'rest',
  'rest-backlog',
  'events-per-call',
  'first-minute',
  'half-fails',
  'jit',
  'node',
  'max',
  'latency',
  'far',
  'fan-out',
  'neighbours',
  'floods',
  'deferred',
  'backlog',
  'ingest',
  'list',
  'postgres-queue',
  'change',
  'shards',
  'profile',
  'soak',
] as const;

export type ScenarioName = (typeof SCENARIO_NAMES)[number];

export interface BenchOptions {
  scenarios: ScenarioName[];
  isQuick: boolean;
  runs: number | null;
  seconds: number | null;
  /** Number of deliveries that the scenarios `list` and `deferred` store first; null: their defaults. */
  stored: number | null;
  /** Back end of the queue in the scenarios `floods`, `deferred` and `soak`. */
  queue: QueueName;
  /** Whether docs/performance.md and its plots are written from the results. */
  writesDocs: boolean;
}

export class UsageError extends Error {}

/** @throws UsageError for invalid arguments */
export function parseOptions(args: readonly string[]): BenchOptions {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        runs: { type: 'string' },
        seconds: { type: 'string' },
        stored: { type: 'string' },
        queue: { type: 'string', default: 'redis' },
        // scripts/bench.mjs uses this option to choose the Node that runs the benchmark.
        node: { type: 'string' },
        'write-docs': { type: 'boolean', default: false },
      },
    });
    const unknown = positionals.find((name) => !SCENARIO_NAMES.includes(name as ScenarioName));
    if (unknown !== undefined) throw new UsageError(`There is no scenario "${unknown}".`);
    return {
      scenarios: SCENARIO_NAMES.filter((name) =>
        positionals.length === 0
          ? name !== 'soak' && !(values.quick && name === 'profile')
          : positionals.includes(name),
      ),
      isQuick: values.quick,
      runs: positiveNumber('--runs', values.runs),
      seconds: positiveNumber('--seconds', values.seconds),
      stored: positiveNumber('--stored', values.stored),
      queue: queueName(values.queue),
      writesDocs: values['write-docs'],
    };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError((error as Error).message);
  }
}

function queueName(name: string): QueueName {
  if (name !== 'redis' && name !== 'postgres') throw new UsageError(`There is no queue "${name}".`);
  return name;
}

function positiveNumber(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`${name} must be a number above 0.`);
  return value;
}
