import type { Figures } from '../bench.ts';
import { type Load, type Observation, observe } from './observe.ts';
import { DEFAULT_SETUP, type Setup } from './service.ts';
import { type Measured, type MeasuredValue, type ServiceTimes, timesOf } from './times.ts';

/** Figures that `npm run bench` measured, by scenario and case. */
export type Rows = Record<string, Record<string, Figures>>;

/** All processes on a machine with two cores, with endpoints that respond immediately. */
export const BENCH_SETUP: Setup = {
  ...DEFAULT_SETUP,
  dispatchers: 1,
  management: 1,
  machineCores: 2,
  responseTime: { p50Ms: 0.2, p99Ms: 0.4 },
  failureShare: 0,
  endpoints: 20,
};

const CALLERS = 32;

/** The setup and load with which each case of the benchmark is simulated. */
const CASES: Record<string, { setup?: Partial<Setup>; load: Load; durationMs: number }> = {
  'max: 1 dispatcher': { load: { kind: 'prefilled', events: 25_000 }, durationMs: 60_000 },
  'max: 2 dispatchers': {
    setup: { dispatchers: 2 },
    load: { kind: 'prefilled', events: 25_000 },
    durationMs: 60_000,
  },
  'rest: accepted, no dispatcher': {
    setup: { dispatchers: 0 },
    load: { kind: 'callers', callers: CALLERS },
    durationMs: 4_000,
  },
  'rest: maximum rate': { load: { kind: 'callers', callers: CALLERS }, durationMs: 5_000 },
  ...Object.fromEntries(
    [50, 100, 300, 1_000].map((ratePerSecond) => [
      `rest: ${ratePerSecond}/s`,
      {
        load: { kind: 'open', via: 'rest', ratePerSecond, arrivals: 'even' } as const,
        durationMs: Math.max(4_000, 600_000 / ratePerSecond),
      },
    ]),
  ),
  'latency: 100 events/s': {
    load: { kind: 'open', via: 'queue', ratePerSecond: 100, arrivals: 'even' },
    durationMs: 18_000,
  },
  'far: response after 1000 ms': {
    setup: { responseTime: { p50Ms: 1_000, p99Ms: 1_000 } },
    load: { kind: 'open', via: 'queue', ratePerSecond: 1_106, arrivals: 'even' },
    durationMs: 6_000,
  },
};

/**
 * @param rows measured figures, which contain rates that the benchmark chose itself
 * @param runMs duration of a run of the benchmark, which determines how long a backlog can grow
 */
export function simulateCase(
  times: ServiceTimes,
  name: string,
  rows: Rows = {},
  runMs?: number,
): Observation {
  const one = CASES[name];
  if (one === undefined) throw new Error(`There is no case "${name}".`);
  const { setup, load, durationMs } = one;
  const ratePerSecond = findFigure(rows, name, 'ratePerSecond');
  const measuredLoad =
    load.kind === 'open' && ratePerSecond !== undefined ? { ...load, ratePerSecond } : load;
  const hasBacklog = name.startsWith('far');
  return observe({
    ...{ times, setup: { ...BENCH_SETUP, ...setup }, load: measuredLoad },
    ...(hasBacklog ? { warmUpMs: 0, durationMs: runMs ?? durationMs } : { durationMs }),
  });
}

interface Knob {
  part: keyof ServiceTimes;
  /** Names of the times of a part, which are scaled by the same factor. */
  names: readonly string[];
  case: string;
  figure: string;
  simulated: (observation: Observation) => number;
}

const cpu = (part: keyof Observation['cpuMicros']) => ({
  figure: `${part}CpuMicros`,
  simulated: ({ cpuMicros }: Observation) => cpuMicros[part],
});
const DRAIN = 'max: 1 dispatcher';
const ACCEPTED = 'rest: accepted, no dispatcher';
const QUIET = 'latency: 100 events/s';
const QUIET_REST = 'rest: 50/s';

/**
 * Times that cannot be measured directly are fitted so that these cases give the measured figures. Of cases at maximum
 * load only the CPU is used, never the rate, because the simulation has to predict that.
 */
const KNOBS: readonly Knob[] = [
  {
    part: 'dispatcher',
    names: ['jobMicros', 'eventMicros', 'deliveryMicros', 'batchMicros'],
    case: DRAIN,
    ...cpu('dispatcher'),
  },
  { part: 'redis', names: ['eventMicros'], case: DRAIN, ...cpu('redis') },
  {
    part: 'postgres',
    names: ['stateRowMicros', 'eventRowMicros', 'deliveryRowMicros'],
    case: DRAIN,
    ...cpu('postgres'),
  },
  { part: 'management', names: ['callMicros', 'batchMicros'], case: ACCEPTED, ...cpu('management') },
  { part: 'postgres', names: ['reportRowMicros'], case: ACCEPTED, ...cpu('postgres') },
  { part: 'dispatcher', names: ['wakeMicros'], case: QUIET, ...cpu('dispatcher') },
  { part: 'management', names: ['wakeMicros'], case: QUIET_REST, ...cpu('management') },
  { part: 'redis', names: ['wakeMicros'], case: QUIET, ...cpu('redis') },
  { part: 'postgres', names: ['wakeMicros'], case: QUIET, ...cpu('postgres') },
  { part: 'postgres', names: ['reportStatementMicros'], case: QUIET_REST, ...cpu('postgres') },
  { part: 'machine', names: ['networkMs'], case: QUIET, figure: 'p50Ms', simulated: ({ p50Ms }) => p50Ms },
  { part: 'machine', names: ['unevenness'], case: QUIET, figure: 'p99Ms', simulated: ({ p99Ms }) => p99Ms },
];

const ROUNDS = 10;
/** Share of a correction that one round applies: less than 1, since knobs affect each other's figures. */
const STEP_SHARE = 0.8;
const FACTOR_MAX = 2;
const MINIMUM_VALUES: Record<string, number> = { networkMs: 0.01, unevenness: 1.1 };

/** Returns the times with which the fitted cases give the figures of the rows. */
export function calibrate(start: ServiceTimes, rows: Rows): ServiceTimes {
  const times = structuredClone(start);
  Object.assign(times.machine, machineOf(rows));
  for (let round = 0; round < ROUNDS; round += 1) {
    const observed = new Map(
      [...new Set(KNOBS.map((knob) => knob.case))].map((name) => [name, simulateCase(times, name)]),
    );
    for (const { part, names, case: name, figure, simulated } of KNOBS) {
      const target = findFigure(rows, name, figure);
      if (target === undefined) continue;
      const ratio = target / simulated(observed.get(name) as Observation);
      const factor = Math.min(FACTOR_MAX, Math.max(1 / FACTOR_MAX, ratio ** STEP_SHARE));
      const values = times[part] as Record<string, number>;
      for (const one of names)
        values[one] = Math.max((values[one] ?? 0) * factor, MINIMUM_VALUES[one] ?? 0.5);
    }
  }
  return times;
}

/**
 * Returns the properties of the machine that the rows contain: the cost of the endpoints, and the slowdown of busy cores,
 * which a shared host changes from hour to hour.
 */
function machineOf(rows: Rows): Partial<ServiceTimes['machine']> {
  const { '1 dispatcher': one, '2 dispatchers': two } = rows.max ?? {};
  const { receiverCpuPercent, ratePerSecond, dispatcherCpuMicros } = one ?? {};
  return {
    ...(receiverCpuPercent !== undefined &&
      ratePerSecond !== undefined && { receiverMicros: (receiverCpuPercent * 10_000) / ratePerSecond }),
    ...(two?.dispatcherCpuMicros !== undefined &&
      dispatcherCpuMicros !== undefined && {
        sharingShare: Math.max(0, two.dispatcherCpuMicros / dispatcherCpuMicros - 1),
      }),
  };
}

export function findFigure(rows: Rows, name: string, figure: string): number | undefined {
  const [scenario = '', row = ''] = name.split(/: (.*)/);
  return rows[scenario]?.[row]?.[figure];
}

/** Returns the content of the file with the fitted values and their origin. */
export function updateMeasured(measured: Measured, rows: Rows, page: string): Measured {
  const times = calibrate(timesOf(measured), rows);
  const result = structuredClone(measured);
  for (const { part, names, case: name, figure } of KNOBS) {
    for (const one of names) {
      const value = (times[part] as Record<string, number>)[one] ?? 0;
      const from = `fitted to ${page}: ${name}, ${figure} ${findFigure(rows, name, figure)}`;
      (result[part] as Record<string, MeasuredValue>)[one] = {
        value: Number(value.toPrecision(3)),
        source: 'derived',
        from,
      };
    }
  }
  return result;
}
