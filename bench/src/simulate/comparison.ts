import type { Figures } from '../bench.ts';
import type { BenchOptions } from '../options.ts';
import { textReport } from '../report/table.ts';
import { createProgress, run } from '../run.ts';
import { scenarios } from '../scenarios/index.ts';
import { rest } from '../scenarios/rest.ts';
import { BENCH_SETUP, calibrate, findFigure, type Rows, simulateCase } from './calibrate.ts';
import type { Observation } from './observe.ts';
import type { ServiceTimes } from './times.ts';

const TOLERANCE = 0.2;
/**
 * Default number of runs and their duration in seconds. Short, because the scenarios are compared with each other, and
 * a shared host changes its speed by a third within minutes.
 */
const RUNS = 1;
const RUN_SECONDS = 5;

interface ComparedRow {
  case: string;
  figure: 'ratePerSecond' | 'p50Ms' | 'p99Ms';
  /**
   * Reported but not compared with the tolerance: tails, and medians on a machine without a free core, depend on how it
   * is shared.
   */
  isInformational?: true;
}

const ROWS: readonly ComparedRow[] = [
  { case: 'max: 1 dispatcher', figure: 'ratePerSecond' },
  { case: 'max: 2 dispatchers', figure: 'ratePerSecond' },
  { case: 'rest: maximum rate', figure: 'ratePerSecond' },
  { case: 'rest: 50/s', figure: 'p50Ms' },
  { case: 'rest: 100/s', figure: 'p50Ms' },
  { case: 'rest: 50/s', figure: 'p99Ms', isInformational: true },
  { case: 'rest: 100/s', figure: 'p99Ms', isInformational: true },
  { case: 'rest: 300/s', figure: 'p50Ms' },
  { case: 'rest: 300/s', figure: 'p99Ms', isInformational: true },
  { case: 'rest: 1000/s', figure: 'p50Ms', isInformational: true },
  { case: 'rest: 1000/s', figure: 'p99Ms', isInformational: true },
  { case: 'far: response after 1000 ms', figure: 'p50Ms' },
  { case: 'far: response after 1000 ms', figure: 'p99Ms' },
];

const TITLES = { ratePerSecond: 'per second', p50Ms: 'p50, ms', p99Ms: 'p99, ms' };

/** A measured figure of the benchmark, and the simulated figure of the same case. */
export interface Comparison {
  case: string;
  figure: string;
  measured: number;
  simulated: number;
  ratio: number;
  isWithin: boolean;
  isChecked: boolean;
}

/** Returns, for each figure that the simulation was not fitted to, its measured and its simulated value. */
export function compare(start: ServiceTimes, rows: Rows, runMs?: number): Comparison[] {
  const times = calibrate(start, rows);
  const simulated = new Map<string, Observation>();
  return ROWS.flatMap(({ case: name, figure, isInformational }) => {
    const measured = findFigure(rows, name, figure);
    if (measured === undefined) return [];
    const observation = simulated.get(name) ?? simulateCase(times, name, rows, runMs);
    simulated.set(name, observation);
    const ratio = observation[figure] / measured;
    const isWithin = Math.abs(ratio - 1) <= TOLERANCE;
    const row = { case: name, figure: TITLES[figure], measured, simulated: observation[figure], ratio };
    return [{ ...row, isWithin, isChecked: !isInformational }];
  });
}

/** Runs the cases on this machine: those that the times are fitted to, and those that they are compared with. */
export async function benchRows(
  options: Pick<BenchOptions, 'runs' | 'seconds'>,
  signal: AbortSignal,
): Promise<{ rows: Rows; runMs: number }> {
  const report = await run(
    {
      runs: options.runs ?? RUNS,
      seconds: options.seconds ?? RUN_SECONDS,
      scenarios: ['rest', 'max', 'latency', 'far'],
      ...{ isQuick: false, stored: null, queue: 'redis', writesDocs: false },
    },
    createProgress(process.stderr),
    signal,
    { ...scenarios, rest: (bench) => rest(bench, ['redis']) },
  );
  if (report.voided.length > 0) process.stderr.write(`${textReport(report)}\n`);
  if (report.voided.length > 0) throw new Error(`The benchmark is void: ${report.voided.join('; ')}`);
  const cores = report.machine.cores;
  if (cores !== BENCH_SETUP.machineCores)
    process.stderr.write(`This machine has ${cores} cores; ${BENCH_SETUP.machineCores} are simulated.\n`);
  const rows = Object.fromEntries(
    report.scenarios.map(({ name, rows: cases }) => [
      name,
      Object.fromEntries(cases.map((row): [string, Figures] => [row.case, row.figures])),
    ]),
  );
  return { rows, runMs: (report.lengths.seconds ?? RUN_SECONDS) * 1_000 };
}
