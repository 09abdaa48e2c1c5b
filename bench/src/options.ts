import { parseArgs } from 'node:util';

export const SCENARIO_NAMES = [
  'max',
  'latency',
  'far',
  'fan-out',
  'neighbours',
  'backlog',
  'ingest',
  'list',
  'postgres-queue',
  'change',
  'profile',
] as const;

export type ScenarioName = (typeof SCENARIO_NAMES)[number];

export interface BenchOptions {
  scenarios: ScenarioName[];
  isQuick: boolean;
  runs: number | null;
  seconds: number | null;
  /** Deliveries that `list` stores. */
  stored: number | null;
  /** Writes docs/performance.md and its plots from what was measured. */
  writesDocs: boolean;
}

export class UsageError extends Error {}

export const USAGE = `usage: npm run bench [-- <scenario>… --quick --runs <n> --seconds <n> --stored <n> --write-docs]

scenarios: ${SCENARIO_NAMES.join(' ')}; all of them without a name
--quick       everything small, in under 90 seconds: shows that it works, measures nothing
--runs        measurements of each case; 3 when omitted
--seconds     length of one measurement; 8 when omitted
--stored      deliveries that \`list\` stores; 10,000,000 when omitted, a minute for each million
--write-docs  write docs/performance.md from this run`;

/** Throws a {@link UsageError} with what is wrong. */
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
        'write-docs': { type: 'boolean', default: false },
      },
    });
    const unknown = positionals.find((name) => !SCENARIO_NAMES.includes(name as ScenarioName));
    if (unknown !== undefined) throw new UsageError(`There is no scenario "${unknown}".`);
    return {
      scenarios: SCENARIO_NAMES.filter((name) =>
        positionals.length === 0 ? !(values.quick && name === 'profile') : positionals.includes(name),
      ),
      isQuick: values.quick,
      runs: positiveNumber('--runs', values.runs),
      seconds: positiveNumber('--seconds', values.seconds),
      stored: positiveNumber('--stored', values.stored),
      writesDocs: values['write-docs'],
    };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError((error as Error).message);
  }
}

function positiveNumber(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`${name} must be a number above 0.`);
  return value;
}
