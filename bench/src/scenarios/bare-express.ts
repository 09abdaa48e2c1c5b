import { createHmacSecret } from '@runhook/contract';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import { type Bench, type Figures, type Measured, measureCase, type Row } from '../bench.ts';
import { cpuBetween, readCpu } from '../measure/cpu.ts';
import { balance, stored } from '../measure/ledger.ts';
import { spreadOf } from '../measure/timing.ts';
import type { ExpressSettings } from '../programs/express.ts';
import { type Program, startProgram } from '../programs/program.ts';
import { type ClosedLoop, callsOf, type OpenLoop, type Reported } from '../programs/reports.ts';
import { takeArrivals } from '../world/workload.ts';
import { untilArrived } from './latency.ts';
import { HEALTHY_ACCOUNTS } from './throughput.ts';

const RATES = [100, 300];
/** Of whoever calls as fast as it gets answers. */
export const CALLERS = 32;

/** What the rows of the services are told over. */
export interface BareExpress {
  rows: Row[];
  ratePerSecond: number;
  /** Of raw got behind it, by rate. */
  p99Ms: Map<number, number>;
}

/** Express that keeps nothing of what it is told, and raw got behind it: no service made with both can be faster. */
export async function bareExpress(bench: Bench, reporter: Program): Promise<BareExpress> {
  const [{ ratePerSecond }, accepting] = await withExpress([], async (url) => {
    const loop: ClosedLoop = { ...bareSettings(url), callers: CALLERS, durationMs: bench.runMs };
    await reporter.call<Reported>('run', { ...loop, durationMs: Math.min(2_000, bench.runMs) });
    const row = await measureCase(bench, 'bare Express', async () => {
      const { answeredMs, intendedMs, refused, seconds } = await reporter.call<Reported>('run', loop);
      const latenciesMs = answeredMs.map((ms, index) => ms - (intendedMs[index] as number));
      const { p50, p99 } = spreadOf(latenciesMs);
      const figures = { ratePerSecond: answeredMs.length / seconds, answerP50Ms: p50, answerP99Ms: p99 };
      return { figures, balance: stored(answeredMs.length, refused) };
    });
    return [row.figures as { ratePerSecond: number }, row];
  });
  const p99Ms = new Map<number, number>();
  const rows = [accepting];
  const paths = Array.from({ length: HEALTHY_ACCOUNTS }, (_, index) => `/ok/bare-${index + 1}`);
  const port = bench.receiver.port;
  const urls = paths.map((path, index) => `http://127.8.0.${index + 1}:${port}${path}`);
  await withExpress(urls, async (url, pid) => {
    const measure = async (report: () => Promise<Reported>): Promise<Measured & { figures: Sent }> => {
      await takeArrivals(bench);
      const before = readCpu({ express: [pid] });
      const reported = await report();
      const calls = callsOf(reported);
      await untilArrived(bench, calls.length);
      const use = cpuBetween(before, readCpu({ express: [pid] }));
      const arrivals = await takeArrivals(bench);
      // Which of the endpoints one was sent to is not asked here.
      const at = arrivals.paths.map(() => '');
      const expected = calls.map(({ call, intendedMs }) => ({ eventId: call, path: '', intendedMs }));
      const ledger = balance(expected, { ...arrivals, paths: at });
      const { p50, p99, max } = spreadOf(ledger.latenciesMs);
      const cpuMicros = ((use?.groups.express ?? 0) * 1_000) / ledger.delivered;
      return { figures: { p50Ms: p50, p99Ms: p99, maxMs: max, cpuMicros }, balance: ledger };
    };
    const open = (ratePerSecond: number, durationMs = bench.runMs) =>
      measure(() =>
        reporter.call('openLoop', { ...bareSettings(url), ratePerSecond, durationMs } satisfies OpenLoop),
      );
    const fast = async () => {
      const startMs = performance.now();
      const loop: ClosedLoop = { ...bareSettings(url), callers: CALLERS, durationMs: bench.runMs };
      const { figures, balance: ledger } = await measure(() => reporter.call('run', loop));
      const ratePerSecond = ledger.delivered / ((performance.now() - startMs) / 1_000);
      return { figures: { ratePerSecond, cpuMicros: figures.cpuMicros }, balance: ledger };
    };
    await open(RATES.at(-1) as number, Math.min(2_000, bench.runMs));
    const fastest = await measureCase(bench, 'raw got behind bare Express, as fast as it goes', fast);
    for (const rate of RATES) {
      const row = await measureCase(bench, `raw got behind bare Express, ${rate}/s`, async () => {
        const { figures, balance: ledger } = await open(rate);
        const cpuOverFast = figures.cpuMicros / (fastest.figures.cpuMicros as number);
        return { figures: { ratePerSecond: rate, ...figures, cpuOverFast }, balance: ledger };
      });
      rows.push(row);
      p99Ms.set(rate, row.figures.p99Ms as number);
    }
    rows.push(fastest);
  });
  return { rows, ratePerSecond, p99Ms };
}

/** Of each that was sent. */
interface Sent extends Figures {
  p99Ms: number;
  cpuMicros: number;
}

function bareSettings(url: string): Pick<ClosedLoop, 'url' | 'runners'> {
  const runners = Array.from({ length: HEALTHY_ACCOUNTS }, (_, index) => ({
    accountId: index + 1,
    token: 'none',
    jobId: 1,
  }));
  return { url, runners };
}

/** @param work is told its address, and its pid */
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
