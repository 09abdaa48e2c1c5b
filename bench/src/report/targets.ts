import { cpus, platform, release, totalmem } from 'node:os';
import type { RawReference, ScenarioResult } from '../bench.ts';
import type { RawResult } from '../programs/raw.ts';

/** The complete result of a run of the benchmark, as stored in the JSON file. */
export interface Report {
  startedAt: string;
  seconds: number;
  isQuick: boolean;
  lengths: Record<string, number>;
  machine: MachineFacts;
  raw: RawReference & { runs: RawResult[]; afterRatePerSecond: number };
  /** The reasons why the run is void; empty if it is valid. */
  voided: string[];
  scenarios: ScenarioResult[];
}

/** A row of the table of targets. */
export interface Target {
  figure: string;
  pass: number;
  /** Null if `pass` is the only target. */
  stretchGoal: number | null;
  /** Whether higher values are better. */
  isFloor: boolean;
  measured: number | null;
}

type FigureOf = (scenario: string, row: string, name: string) => number | null;

function ratio(value: number | null, base: number | null): number | null {
  return value === null || base === null || base === 0 ? null : value / base;
}

function ceiling(name: string, pass: number, stretchGoal: number | null, measured: number | null): Target {
  return { figure: name, pass, stretchGoal, measured, isFloor: false };
}

function floor(name: string, pass: number, stretchGoal: number | null, measured: number | null): Target {
  return { ...ceiling(name, pass, stretchGoal, measured), isFloor: true };
}

/** Returns all targets; `measured` is null for scenarios that are not part of the run. */
export function targetsOf(report: Report): Target[] {
  const figure: FigureOf = (scenario, row, name) => {
    const rows = report.scenarios.find((one) => one.name === scenario)?.rows;
    return rows?.find((one) => one.case === row)?.figures[name] ?? null;
  };
  const healthyP99 = (share: string) => figure('neighbours', `${share} % do not respond`, 'p99Ms');
  const rateWithQueued = (size: string) => figure('backlog', `${size} queued`, 'ratePerSecond');
  return [
    ...conditionTargets(figure),
    floor('slowest row on this Node, over the oldest supported', 0.95, 1.1, slowestOnThisNode(report)),
    ...restTargets(figure),
    ...parallelTargets(figure),
    ceiling('p99 at 0.3 of raw got, ms', 80, 50, figure('latency', '0.3 of raw got', 'p99Ms')),
    ceiling('p99 at 0.5 of raw got, ms', 110, 70, figure('latency', '0.5 of raw got', 'p99Ms')),
    ceiling('p99 at 0.67 of raw got, ms', 160, 100, figure('latency', '0.67 of raw got', 'p99Ms')),
    ceiling('p99 at 100 events/s, ms', 25, 16, figure('latency', '100 events/s', 'p99Ms')),
    ceiling(
      'healthy p99 with 10 % dead endpoints, over none',
      1.4,
      1.15,
      ratio(healthyP99('10'), healthyP99('0')),
    ),
    floor(
      'rate with 1,000,000 events queued, over none',
      0.9,
      1,
      ratio(rateWithQueued('1,000,000'), rateWithQueued('0')),
    ),
    ceiling(
      'Redis bytes per queued delivery',
      900,
      700,
      figure('backlog', 'a queued delivery', 'redisBytes'),
    ),
    ...floodTargets(figure),
    ceiling('slowest page of a log of 10,000,000, ms', 20, 10, slowestPage(report)),
    ceiling('missing or repeated, in all runs', 0, 0, countMissingOrRepeated(report)),
  ];
}

/** Targets under the conditions of a typical installation: Debian's PostgreSQL, new services, one webhook. */
function conditionTargets(figure: FigureOf): Target[] {
  const counted = (name: string) => figure('rest-backlog', 'one webhook, cold, counted', name);
  return [
    floor(
      'REST backlog of one webhook: rate over raw got',
      0.75,
      1,
      figure('rest-backlog', 'one webhook, cold', 'ratioToRaw'),
    ),
    ceiling('REST backlog of one webhook: WAL per delivery, bytes', 2_400, 2_150, counted('walBytes')),
    ceiling(
      'REST backlog of one webhook: statement time per delivery, ms',
      0.2,
      0.12,
      counted('statementMs'),
    ),
    floor(
      'events of POST …/events to the endpoint, 100 per call, over 1 per call',
      1.2,
      1.5,
      figure('events-per-call', '100 per call', 'rateRatioToSingle'),
    ),
    ceiling(
      'p99 at 100/s in the first minute, over after 20,000 events',
      1.2,
      1.05,
      figure('first-minute', 'in the first minute', 'p99RatioToLater'),
    ),
    ceiling(
      'CPU of an event on PostgreSQL 15 with JIT, over without',
      1.1,
      1.02,
      figure('jit', 'JIT on', 'cpuRatioToJitOff'),
    ),
    ceiling(
      'p95 to the first request of an endpoint that fails half, ms',
      2_000,
      500,
      figure('half-fails', '20/s to an endpoint that fails half', 'firstP95Ms'),
    ),
  ];
}

/** Targets from a job runner's REST call to the endpoint. */
function restTargets(figure: FigureOf): Target[] {
  const fastestRow = 'maximum rate';
  const cpu = (row: string) => figure('rest', row, 'cpuMicros');
  const memory = (row: string, name: string) => figure('rest', row, name);
  const counted = (name: string) => figure('rest', 'counted, 100/s', name);
  const max = (dispatchers: string, name: string) => figure('max', dispatchers, name);
  const accepted = (row: string) => figure('rest', row, 'ratioToExpress');
  return [
    floor(
      'events accepted over REST with the dispatcher stopped, over bare Express',
      0.35,
      0.45,
      accepted('accepted, no dispatcher'),
    ),
    floor('events accepted over REST and delivered, over bare Express', 0.17, 0.23, accepted(fastestRow)),
    floor('from REST to the endpoint, over raw got', 0.5, 0.6, figure('rest', fastestRow, 'ratioToRaw')),
    ...[100, 300].map((rate) =>
      ceiling(
        `p99 from call to endpoint at ${rate}/s, over raw got`,
        2,
        1.5,
        figure('rest', `${rate}/s`, 'p99RatioToRaw'),
      ),
    ),
    ceiling(
      'CPU of an event at 100/s, over the minimal service',
      1.8,
      1.4,
      ratio(cpu('100/s'), cpu('minimal service: two INSERTs, a Redis list, raw got, 100/s')),
    ),
    floor(
      'rate of one dispatcher, over raw got of one process',
      1.05,
      1.3,
      max('1 dispatcher', 'ratioToRaw'),
    ),
    floor(
      'rate of two dispatchers, over raw got of one process',
      1.25,
      1.5,
      max('2 dispatchers', 'ratioToRaw'),
    ),
    ceiling(
      'CPU of dispatcher, Redis and PostgreSQL per delivery, over raw got',
      1.25,
      1,
      max('1 dispatcher', 'cpuRatioToRaw'),
    ),
    ceiling('management idle, MB', 95, 85, memory('idle', 'managementMb')),
    ceiling('management under load, MB', 150, 120, memory(fastestRow, 'managementMb')),
    ceiling('dispatcher idle, MB', 85, 75, memory('idle', 'dispatcherMb')),
    ceiling('dispatcher under load, MB', 160, 140, memory(fastestRow, 'dispatcherMb')),
    ceiling('disk for an event with one delivery, bytes', 1_400, null, counted('diskBytes')),
    ceiling('WAL of an event with one delivery, bytes', 2_300, null, counted('walBytes')),
  ];
}

/** Targets for the latency of an account while another account is active. */
function parallelTargets(figure: FigureOf): Target[] {
  const ratioToBaseline = (row: string, name: string) =>
    ratio(figure('neighbours', row, name), figure('neighbours', 'an account, baseline', name));
  const changingRow = 'in parallel with 1,000 changing webhooks';
  return [
    ceiling(`p99 ${changingRow}, over baseline`, 2, 1.3, ratioToBaseline(changingRow, 'p99Ms')),
    ceiling(`p50 ${changingRow}, over baseline`, 2, 1.2, ratioToBaseline(changingRow, 'p50Ms')),
    ...['takes 200 ms', 'hangs'].map((what) => {
      const row = `in parallel with 15,000 events for an endpoint that ${what}`;
      return ceiling(`p99 ${row}, over baseline`, 1.5, null, ratioToBaseline(row, 'p99Ms'));
    }),
  ];
}

function slowestOnThisNode({ scenarios }: Report): number | null {
  const rows = scenarios.find(({ name }) => name === 'node')?.rows;
  return rows === undefined ? null : Math.min(...rows.map(({ figures }) => figures.speed ?? Number.NaN));
}

const CLOSED_PORT = 'with 1,000 subscriptions to a refused port';

/** Limits for the effect of floods and deferred deliveries on other accounts. */
function floodTargets(figure: FigureOf): Target[] {
  const waiting = (count: string) => figure('floods', `${count} waiting`, 'redisCommandsPerSecond');
  const growth = (name: string) =>
    ratio(figure('deferred', 'last third', name), figure('deferred', 'first third', name));
  return [
    ceiling(
      'p99 while another path of the server hangs, over baseline',
      1.5,
      1.2,
      figure('floods', 'a path while another one hangs', 'p99Ratio'),
    ),
    ceiling(
      'Redis commands/s with 100,000 waiting, over none',
      1.2,
      1.05,
      ratio(waiting('100,000'), waiting('0')),
    ),
    ceiling(
      'p95 of the lateness of retries with 100,000 waiting, ms',
      2_000,
      500,
      figure('floods', '100,000 waiting', 'retryLateP95Ms'),
    ),
    ceiling(
      'script calls per event of a burst for an endpoint that takes 200 ms',
      5,
      3,
      figure('floods', 'a burst for an endpoint that takes 200 ms', 'scriptCallsPerEvent'),
    ),
    ceiling(`p99 ${CLOSED_PORT}, over baseline`, 2, 1.5, figure('floods', CLOSED_PORT, 'p99Ratio')),
    ceiling(`dispatcher ${CLOSED_PORT}, MB`, 400, 300, figure('floods', CLOSED_PORT, 'dispatcherMb')),
    ceiling('with a million deferred: p99, last third over first', 1.3, 1.1, growth('p99Ms')),
    ceiling(
      'with a million deferred: dispatcher MB, last third over first',
      1.2,
      1.1,
      growth('dispatcherMb'),
    ),
    ceiling('with a million deferred: Redis MB, last third over first', 1.2, 1.1, growth('redisMb')),
    ceiling(
      'with a million deferred: CPU of PostgreSQL, last third over first',
      1.2,
      1.1,
      growth('postgresPercent'),
    ),
    ceiling(
      'positions by which a delivery of a lane was late',
      64,
      0,
      figure('deferred', 'endpoints respond again', 'positionsLateMax'),
    ),
  ];
}

/** Returns the highest median of the page loads. */
function slowestPage({ scenarios }: Report): number | null {
  const pages = scenarios
    .find(({ name }) => name === 'list')
    ?.rows.filter((row) => row.case.startsWith('log, '));
  return pages === undefined ? null : Math.max(...pages.map(({ figures }) => figures.p50Ms ?? Number.NaN));
}

export function formatVerdict({
  measured,
  pass,
  stretchGoal,
  isFloor,
}: Target): 'not run' | 'missed' | 'pass' | 'stretch' {
  if (measured === null || Number.isNaN(measured)) return 'not run';
  const isReached = (bar: number) => (isFloor ? measured >= bar : measured <= bar);
  if (stretchGoal !== null && isReached(stretchGoal)) return 'stretch';
  return isReached(pass) ? 'pass' : 'missed';
}

export function formatStretchGoal({ stretchGoal }: Target): string {
  return stretchGoal === null ? '' : String(stretchGoal);
}

function countMissingOrRepeated({ scenarios }: Report): number {
  return scenarios
    .flatMap(({ rows }) => rows)
    .reduce((sum, { ledger }) => sum + ledger.missing + ledger.repeated, 0);
}

/** The facts about the machine that affect the figures. */
export interface MachineFacts {
  cores: number;
  processor: string;
  memoryGigabytes: number;
  system: string;
  node: string;
}

export function machineFacts(): MachineFacts {
  const [first] = cpus();
  return {
    cores: cpus().length,
    processor: first?.model.trim() ?? 'unknown',
    memoryGigabytes: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.versions.node,
  };
}
