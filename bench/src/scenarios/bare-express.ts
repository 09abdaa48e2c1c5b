import { createHmacSecret } from '@runhook/contract';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import { type Bench, type Figures, type Measured, measureCase, type Row } from '../bench.ts';
import { type CpuReading, cpuBetween, readCpu } from '../measure/cpu.ts';
import { acceptedBalance, balance } from '../measure/ledger.ts';
import { spreadOf } from '../measure/timing.ts';
import type { ExpressSettings } from '../programs/express.ts';
import { type Program, startProgram } from '../programs/program.ts';
import { type ClosedLoop, callsOf, type OpenLoop, type Reported } from '../programs/reports.ts';
import { takeArrivals } from '../world/workload.ts';
import { waitForArrivals } from './latency.ts';
import { HEALTHY_ACCOUNTS } from './throughput.ts';

const RATES = [100, 300];
const ENDPOINTS = HEALTHY_ACCOUNTS;
/** Number of callers in a closed loop. */
export const CALLERS = 32;

/**
 * Bare Express as a reference for rows that measure Runhook. It is measured again with each row, because the speed of a
 * shared machine varies.
 */
export interface BareExpress {
  rows: Row[];
  /** Returns the number of calls per second that bare Express responds to. */
  measureReferenceRate(): Promise<{ ratePerSecond: number }>;
  /** Returns the p99 of bare Express followed by raw got at a rate; undefined at other rates. */
  measureReferenceP99Ms(ratePerSecond: number): Promise<number | undefined>;
}

/**
 * Measures an Express server that stores nothing, followed by raw got: an upper bound for any service that is built
 * with both.
 */
export async function withBareExpress<Result>(
  bench: Bench,
  reporter: Program,
  work: (bare: BareExpress) => Promise<Result>,
): Promise<Result> {
  return await withExpress([], async (url) => {
    const name = 'bare Express';
    const measureAccepted = async (
      durationMs = bench.runMs,
    ): Promise<Measured & { figures: AcceptedFigures }> => {
      const loop: ClosedLoop = { ...bareSettings(url), callers: CALLERS, durationMs };
      const { respondedAtMs, intendedMs, rejected, seconds } = await reporter.call<Reported>('run', loop);
      const { p50, p99 } = spreadOf(respondedAtMs.map((ms, index) => ms - (intendedMs[index] as number)));
      const figures = {
        ratePerSecond: respondedAtMs.length / seconds,
        responseP50Ms: p50,
        responseP99Ms: p99,
      };
      return { figures, balance: acceptedBalance(respondedAtMs.length, rejected) };
    };
    await measureAccepted(Math.min(2_000, bench.runMs));
    const acceptedRow = await measureCase(bench, name, () => measureAccepted());
    return await withRawAfterExpress(bench, reporter, async ({ rows, measureReferenceP99Ms }) => {
      const measureReferenceRate = async () =>
        await measureOnce(bench, `${name}, reference`, measureAccepted);
      return await work({ rows: [acceptedRow, ...rows], measureReferenceRate, measureReferenceP99Ms });
    });
  });
}

/** Figures of calls to bare Express that cause no delivery. */
interface AcceptedFigures extends Figures {
  ratePerSecond: number;
  responseP50Ms: number;
  responseP99Ms: number;
}

async function withRawAfterExpress<Result>(
  bench: Bench,
  reporter: Program,
  work: (raw: Pick<BareExpress, 'rows' | 'measureReferenceP99Ms'>) => Promise<Result>,
): Promise<Result> {
  return await withExpress(createEndpointUrls(bench, 'bare'), async (url, pid) => {
    const name = 'raw got behind bare Express';
    const read = () => readCpu({ express: [pid] });
    const reported = await reportedRows(bench, reporter, { name, url, rates: RATES, read });
    return await work({
      rows: reported.rows,
      async measureReferenceP99Ms(rate) {
        if (!RATES.includes(rate)) return undefined;
        return (await measureOnce(bench, `${name}, ${rate}/s, reference`, () => reported.open(rate))).p99Ms;
      },
    });
  });
}

/** Measures a reference that has no row in the report; its ledger is verified. */
async function measureOnce<Of extends Measured>(
  bench: Bench,
  name: string,
  measure: () => Promise<Of>,
): Promise<Of['figures']> {
  return (await measureCase(bench, name, measure, 1)).figures as Of['figures'];
}

/** Measures a program that sends an event for each call, at some rates and at its maximum. */
export async function reportedRows(
  bench: Bench,
  reporter: Program,
  source: { name: string; url: string; rates: readonly number[]; read: () => CpuReading | null },
): Promise<{ rows: Row[]; open: (ratePerSecond: number) => Promise<Measured & { figures: SentFigures }> }> {
  const { name, url, rates, read } = source;
  const open = (ratePerSecond: number, durationMs = bench.runMs) => {
    const loop: OpenLoop = { ...bareSettings(url), ratePerSecond, durationMs };
    return measureReported(bench, read, () => reporter.call('openLoop', loop));
  };
  await open(Math.max(...rates), Math.min(2_000, bench.runMs));
  const fastest = await measureCase(bench, `${name}, maximum rate`, async () => {
    const startMs = performance.now();
    const loop: ClosedLoop = { ...bareSettings(url), callers: CALLERS, durationMs: bench.runMs };
    const { figures, balance: ledger } = await measureReported(bench, read, () => reporter.call('run', loop));
    const { p50Ms: _p50, p99Ms: _p99, maxMs: _max, ...cpu } = figures;
    const ratePerSecond = ledger.delivered / ((performance.now() - startMs) / 1_000);
    return { figures: { ratePerSecond, ...cpu }, balance: ledger };
  });
  const rows: Row[] = [];
  for (const rate of rates) {
    rows.push(
      await measureCase(bench, `${name}, ${rate}/s`, async () => {
        const { figures, balance: ledger } = await open(rate);
        return { figures: { ratePerSecond: rate, ...figures }, balance: ledger };
      }),
    );
  }
  return { rows: [...rows, fastest], open };
}

/** Figures of the events that were sent. */
interface SentFigures extends Figures {
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  cpuMicros: number;
}

/** Reports events, waits until the receiver has them, and returns their latencies and costs. */
async function measureReported(
  bench: Bench,
  read: () => CpuReading | null,
  report: () => Promise<Reported>,
): Promise<Measured & { figures: SentFigures }> {
  await takeArrivals(bench);
  const before = read();
  const reported = await report();
  const calls = callsOf(reported);
  await waitForArrivals(bench, calls.length);
  const { bench: _, ...groups } = cpuBetween(before, read())?.groups ?? {};
  const arrivals = await takeArrivals(bench);
  // The ledger ignores which of the endpoints received an event.
  const emptyPaths = arrivals.paths.map(() => '');
  const expected = calls.map(({ call, intendedMs }) => ({ eventId: call, path: '', intendedMs }));
  const ledger = balance(expected, { ...arrivals, paths: emptyPaths });
  const { p50, p99, max } = spreadOf(ledger.latenciesMs);
  const micros = Object.entries(groups).map(([name, ms]) => [name, (ms * 1_000) / ledger.delivered] as const);
  const figures = {
    ...{ p50Ms: p50, p99Ms: p99, maxMs: max },
    cpuMicros: micros.reduce((sum, [, each]) => sum + each, 0),
    ...(micros.length > 1 && Object.fromEntries(micros.map(([name, each]) => [`${name}CpuMicros`, each]))),
  };
  return { figures, balance: ledger };
}

/** Returns the URLs of endpoints with separate IP addresses. */
export function createEndpointUrls({ receiver }: Bench, name: string): string[] {
  return Array.from(
    { length: ENDPOINTS },
    (_, index) => `http://127.8.0.${index + 1}:${receiver.port}/ok/${name}-${index + 1}`,
  );
}

function bareSettings(url: string): Pick<ClosedLoop, 'url' | 'runners'> {
  const runners = Array.from({ length: ENDPOINTS }, (_, index) => ({
    accountId: index + 1,
    token: 'none',
    jobId: 1,
  }));
  return { url, runners };
}

/** @param work called with the address and pid of the server */
async function withExpress<Result>(
  urls: string[],
  work: (url: string, pid: number) => Promise<Result>,
): Promise<Result> {
  const program = startProgram('express');
  try {
    const settings: ExpressSettings = {
      urls,
      event: exampleEvent('job.run.errored', EXAMPLE_JOB),
      hmacSecret: createHmacSecret(),
    };
    const port = await program.call<number>('listen', settings);
    return await work(`http://127.0.0.1:${port}`, program.pid);
  } finally {
    await program.stop();
  }
}
