import { parseArgs } from 'node:util';
import { UsageError } from '../options.ts';

export const USAGE = `usage: npm run simulate [-- <what> <options>]

what is run, without another word
--rate <n>            deliveries a second; 1000
--arrivals <name>     poisson, even, or burst (ten times as many for ten seconds of each minute); poisson
--how <name>          rest, or queue: published straight onto it; rest
--deliveries <n>      deliveries of each event; 1
--dispatchers, --management, --shards, --redis-nodes, --database-cores, --concurrency <n>
--databases <n>       cells, or workers of Citus: one equal part of everything is simulated
--endpoints <file>    JSON: p50Ms, p99Ms, failureShare, count; or each as --p50-ms, --p99-ms, --failure-share
--seconds, --seed <n> of virtual time, 10; the same seed does the same, 1
--knee                the rate up to which p99 stays, too

instead
--scaling             the trials of the scaler: what came of each, and their pictures into --out <folder>; --most <n>
                      dispatchers in place of what the manifests say
--plans               the plans of docs/scaling.md, and what they cost: --rates 100,1000 --days 30,7 --prices <file>
                      or one price: --vcpu, --disk, --archive, --internet, --zones <dollars>
--docs                writes docs/scaling.md and its pictures from bench/simulate/measured.json
--against-bench       runs scenarios of npm run bench here, fits the times to some and tells the others; --runs, --bench-seconds
--against-page        the same with what docs/performance.md says
--fit                 writes measured.json anew, fitted to docs/performance.md`;

const TEXTS = {
  rate: '1000',
  arrivals: 'poisson',
  how: 'rest',
  deliveries: '1',
  seconds: '10',
  seed: '1',
  databases: '1',
} as const;

const PLAIN = [
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
    'most',
  ],
] as const;

const FLAGS = ['knee', 'scaling', 'plans', 'docs', 'against-bench', 'against-page', 'fit'] as const;

export type Flag = (typeof FLAGS)[number];

export interface SimulateOptions {
  is(flag: Flag): boolean;
  text(name: string): string | undefined;
  /** Throws a `UsageError` where it is no number above 0. */
  number(name: string): number | undefined;
}

export function parseOptions(args: readonly string[]): SimulateOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: Object.fromEntries([
        ...Object.entries(TEXTS).map(([name, usual]) => [name, { type: 'string', default: usual }]),
        ...PLAIN.map((name) => [name, { type: 'string' }]),
        ...FLAGS.map((name) => [name, { type: 'boolean', default: false }]),
      ]) as Record<string, { type: 'string' | 'boolean' }>,
    });
    const text = (name: string) => values[name] as string | undefined;
    return {
      is: (flag) => values[flag] === true,
      text,
      number(name) {
        const given = text(name);
        if (given === undefined) return undefined;
        if (!(Number(given) >= 0)) throw new UsageError(`--${name} must be a number.`);
        return Number(given);
      },
    };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message);
  }
}
