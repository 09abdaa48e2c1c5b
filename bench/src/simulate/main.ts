import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../options.ts';
import { readDocument } from '../report/document.ts';
import { figureText } from '../report/table.ts';
import { updateMeasured } from './calibrate.ts';
import { benchRows, type Comparison, compare } from './comparison.ts';
import { type Prices, readPrices } from './cost.ts';
import { createSlice, findKnee } from './knee.ts';
import { type Load, type Observation, observe, PARTS } from './observe.ts';
import { parseOptions, type SimulateOptions } from './options.ts';
import { trialPicture } from './picture.ts';
import { Planner } from './plans.ts';
import { hpaSettings, kedaSettings, type ScalerSettings } from './scaler.ts';
import { DEFAULT_SETUP, type Setup } from './service.ts';
import { comparisonTable, costTable, fillMarkers, PLAN_TARGETS, plansTable, scalingParts } from './tables.ts';
import { MEASURED, type Measured, readMeasured, timesOf } from './times.ts';
import { countChanges, runTrial, TRIALS, WAVES } from './trials.ts';

const SCALING = new URL('../../../docs/scaling.md', import.meta.url);
const PICTURES = new URL('../../../docs/scaling/', import.meta.url);
const PERFORMANCE = new URL('../../../docs/performance.md', import.meta.url);

/**
 * Resolves with the exit code: 1 if the benchmark contradicts the simulation. `onFigure` gets the result of a
 * comparison in one line.
 */
export async function simulate(
  args: readonly string[],
  signal: AbortSignal,
  onFigure: (figure: string) => void = () => undefined,
): Promise<number> {
  const options = parseOptions(args);
  const measured = readMeasured();
  if (options.is('fit')) {
    const rows = readDocument(readFileSync(PERFORMANCE, 'utf8'));
    const text = JSON.stringify(updateMeasured(measured, rows, 'docs/performance.md'), null, 2);
    writeFileSync(MEASURED, `${text}\n`);
    console.log(`written: ${fileURLToPath(MEASURED)}`);
  } else if (options.is('against-page') || options.is('against-bench')) {
    const { rows, runMs } = options.is('against-page')
      ? { rows: readDocument(readFileSync(PERFORMANCE, 'utf8')), runMs: undefined }
      : await benchRows(
          { runs: options.number('runs') ?? null, seconds: options.number('bench-seconds') ?? null },
          signal,
        );
    const compared = compare(timesOf(measured), rows, runMs);
    if (options.is('docs')) writePage({ against: comparisonTable(compared) });
    onFigure(comparisonFigure(compared));
    return printComparison(compared);
  } else if (options.is('docs')) writeDocs(measured);
  else if (options.is('scaling'))
    writeTrials(measured, options.text('out'), options.number('max-dispatchers'));
  else if (options.is('plans')) printPlans(options, measured);
  else printSingle(options);
  return 0;
}

function comparisonFigure(compared: readonly Comparison[]): string {
  const checked = compared.filter(({ isChecked }) => isChecked);
  const farthest = Math.max(0, ...checked.map(({ ratio }) => Math.abs(ratio - 1)));
  const inTolerance = checked.filter(({ isWithin }) => isWithin).length;
  return `${inTolerance} of ${checked.length} figures within 20 %, the farthest ${(farthest * 100).toFixed(0)} % off`;
}

function printComparison(compared: readonly Comparison[]): number {
  console.log(
    'fitted: the CPU of `max` with one dispatcher and its growth with two, of `accepted`, and of management and PostgreSQL at 50/s; ' +
      'the rate of `accepted`; CPU, p50 and p99 of `latency` at 100/s',
  );
  console.log(
    `${'case'.padEnd(30)}${'figure'.padEnd(14)}${'bench'.padStart(9)}${'simulated'.padStart(11)}  ratio`,
  );
  for (const { case: name, figure, measured, simulated, ratio, ...one } of compared) {
    const cells = [measured, simulated].map(figureText);
    const verdict = `${one.isWithin ? 'within' : 'outside'}${one.isChecked ? '' : ', not checked'}`;
    console.log(
      `${name.padEnd(30)}${figure.padEnd(14)}${cells[0]?.padStart(9)}${cells[1]?.padStart(11)}   ${ratio.toFixed(2)}  ${verdict}`,
    );
  }
  const outside = compared.filter(({ isWithin, isChecked }) => isChecked && !isWithin);
  console.log(
    outside.length === 0 ? 'all checked figures are within 20 %' : `outside of 20 %: ${outside.length}`,
  );
  return outside.length === 0 ? 0 : 1;
}

function writePage(parts: Record<string, string>): void {
  writeFileSync(SCALING, fillMarkers(readFileSync(SCALING, 'utf8'), parts));
  console.log(`written: ${fileURLToPath(SCALING)}`);
}

function writeDocs(measured: Measured): void {
  writePage(scalingParts(measured, readPrices()));
  writeTrials(measured, fileURLToPath(PICTURES));
}

/** Prints the result of each trial for both scalers, and draws its picture if a folder is given. */
function writeTrials(measured: Measured, folder: string | undefined, maxPods?: number): void {
  const times = timesOf(measured);
  const bounded = (settings: ScalerSettings) =>
    maxPods === undefined ? settings : { ...settings, max: maxPods };
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  for (const trial of [...TRIALS, WAVES]) {
    const keda = runTrial({ times, trial, settings: bounded(kedaSettings()), scrapeIntervalMs: 15_000 });
    const hpa = runTrial({ times, trial, settings: bounded(hpaSettings()), scrapeIntervalMs: 30_000 });
    for (const [name, snapshots] of Object.entries({ KEDA: keda, HPA: hpa })) {
      const { ups, downs } = countChanges(snapshots);
      const pods = Math.max(...snapshots.map((snapshot) => snapshot.pods));
      const oldest = Math.max(...snapshots.map(({ oldestSeconds }) => oldestSeconds)).toFixed(0);
      console.log(`${trial.name}, ${name}: up ${ups}, down ${downs}; ${pods} pods; the oldest ${oldest} s`);
    }
    if (folder === undefined || trial === WAVES) continue;
    writeFileSync(join(folder, `${trial.name}.svg`), trialPicture(trial, keda, hpa));
  }
}

function printPlans(options: SimulateOptions, measured: Measured): void {
  const numbers = (name: string) => options.text(name)?.split(',').map(Number);
  const rates = numbers('rates') ?? PLAN_TARGETS.map(({ ratePerSecond }) => ratePerSecond);
  const days = numbers('days') ?? [30];
  if (![...rates, ...days].every((number) => number > 0))
    throw new UsageError('--rates and --days are numbers above 0, with commas.');
  const prices = readPrices(options.text('prices'));
  for (const name of Object.keys(prices) as (keyof Prices)[])
    prices[name] = options.number(name) ?? prices[name];
  const times = timesOf(measured);
  const planner = new Planner(times);
  const plans = rates.map((rate, index) => planner.plan(rate, days[index] ?? (days[0] as number)));
  console.log(`${plansTable(plans)}\n\n${costTable(plans, prices, times)}`);
}

function printSingle(options: SimulateOptions): void {
  const databases = options.number('databases') ?? 1;
  const setup = createSlice(readSetup(options), databases);
  const ratePerSecond = (options.number('rate') ?? 0) / setup.deliveriesPerEvent / databases;
  const via = readChoice(options, 'via', ['rest', 'queue'] as const);
  const arrivals = readChoice(options, 'arrivals', ['poisson', 'even', 'burst'] as const);
  const load: Load =
    arrivals === 'burst'
      ? { kind: 'burst', via, ratePerSecond, times: 10, forMs: 10_000, everyMs: 60_000 }
      : { kind: 'open', via, ratePerSecond, arrivals };
  const times = timesOf(readMeasured());
  const durationMs = (options.number('seconds') ?? 10) * 1_000;
  const observation = observe({ times, setup, load, durationMs, seed: options.number('seed') ?? 1 });
  if (databases > 1) console.log(`one of ${databases} equal parts; rates are of all of them`);
  printObservation(observation, databases);
  if (!options.is('knee')) return;
  const knee = findKnee({ times, setup, load: { via, arrivals: 'poisson' } });
  const rate = Math.round(knee.ratePerSecond * databases).toLocaleString('en');
  console.log(`knee: ${rate} deliveries/s, where ${knee.fullFirst} is full`);
}

function printObservation(observation: Observation, databases: number): void {
  const rate = Math.round(observation.ratePerSecond * databases).toLocaleString('en');
  const [p50, p99, max] = [observation.p50Ms, observation.p99Ms, observation.maxMs].map(figureText);
  console.log(`delivered: ${rate}/s; from call to endpoint p50 ${p50} ms, p99 ${p99} ms, longest ${max} ms`);
  for (const part of PARTS) {
    if (observation.use[part] === 0) continue;
    const isFirst = part === observation.fullFirst ? '   first bottleneck' : '';
    console.log(`${part.padEnd(18)}${(observation.use[part] * 100).toFixed(0).padStart(4)} %${isFirst}`);
  }
}

function readSetup(options: SimulateOptions): Partial<Setup> {
  const file = options.text('endpoints');
  const endpointStats =
    file === undefined ? {} : (JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>);
  const number = (name: string, defaultValue: number) => options.number(name) ?? defaultValue;
  return {
    dispatchers: number('dispatchers', DEFAULT_SETUP.dispatchers),
    management: number('management', DEFAULT_SETUP.management),
    shards: number('shards', DEFAULT_SETUP.shards),
    redisNodes: number('redis-nodes', DEFAULT_SETUP.redisNodes),
    databaseCores: number('database-cores', DEFAULT_SETUP.databaseCores),
    concurrency: number('concurrency', DEFAULT_SETUP.concurrency),
    deliveriesPerEvent: number('deliveries', 1),
    responseTime: {
      p50Ms: number('p50-ms', endpointStats.p50Ms ?? DEFAULT_SETUP.responseTime.p50Ms),
      p99Ms: number('p99-ms', endpointStats.p99Ms ?? DEFAULT_SETUP.responseTime.p99Ms),
    },
    failureShare: number('failure-share', endpointStats.failureShare ?? DEFAULT_SETUP.failureShare),
    endpoints: endpointStats.count ?? DEFAULT_SETUP.endpoints,
  };
}

function readChoice<Name extends string>(
  options: SimulateOptions,
  name: string,
  names: readonly Name[],
): Name {
  const value = options.text(name);
  const found = names.find((one) => one === value);
  if (found === undefined) throw new UsageError(`--${name} is one of ${names.join(', ')}.`);
  return found;
}

export { UsageError };
