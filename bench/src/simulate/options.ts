import { parseArgs } from 'node:util';
import { UsageError } from '../options.ts';

const TEXT_OPTIONS = {
  rate: '1000',
  arrivals: 'poisson',
  via: 'rest',
  deliveries: '1',
  seconds: '10',
  seed: '1',
  databases: '1',
} as const;

const PLAIN_OPTIONS = [
  ...['dispatchers', 'management', 'shards', 'redis-nodes', 'database-cores', 'concurrency'],
  ...['endpoints', 'p50-ms', 'p99-ms', 'failure-share'],
  ...[
    'rates',
    'days',
    'prices',
    'vcpu',
    'disk',
    'archive',
    'internet',
    'zones',
    'runs',
    'bench-seconds',
    'out',
    'max-dispatchers',
  ],
] as const;

const FLAGS = ['knee', 'scaling', 'plans', 'docs', 'against-bench', 'against-page', 'fit'] as const;

export type Flag = (typeof FLAGS)[number];

export interface SimulateOptions {
  is(flag: Flag): boolean;
  text(name: string): string | undefined;
  /** Throws a `UsageError` if the value is not a number above 0. */
  number(name: string): number | undefined;
}

export function parseOptions(args: readonly string[]): SimulateOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: Object.fromEntries([
        ...Object.entries(TEXT_OPTIONS).map(([name, defaultValue]) => [
          name,
          { type: 'string', default: defaultValue },
        ]),
        ...PLAIN_OPTIONS.map((name) => [name, { type: 'string' }]),
        ...FLAGS.map((name) => [name, { type: 'boolean', default: false }]),
      ]) as Record<string, { type: 'string' | 'boolean' }>,
    });
    const text = (name: string) => values[name] as string | undefined;
    return {
      is: (flag) => values[flag] === true,
      text,
      number(name) {
        const value = text(name);
        if (value === undefined) return undefined;
        if (!(Number(value) >= 0)) throw new UsageError(`--${name} must be a number.`);
        return Number(value);
      },
    };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message);
  }
}
