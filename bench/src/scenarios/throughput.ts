import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { JOB_RUN_EVENTS } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import {
  type Bench,
  type Figures,
  type Measured,
  measureCase,
  type RawConditions,
  type RawReference,
  type Row,
  type ScenarioResult,
} from '../bench.ts';
import { type CpuReading, cpuBetween } from '../measure/cpu.ts';
import { balance } from '../measure/ledger.ts';
import type { Published } from '../programs/publisher.ts';
import { createWorkload, settle, takeArrivals, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';

export const HEALTHY_ACCOUNTS = 20;

/** Measures the maximum deliveries per second of one dispatcher, and of two. */
export async function max(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  return { name: 'max', rows: await maxRows(bench, world, [1, 2]) };
}

export async function maxRows(
  bench: Bench,
  world: World,
  dispatcherCounts: readonly number[],
): Promise<Row[]> {
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
  const rows: Row[] = [];
  for (const count of dispatcherCounts) {
    const name = `${count} dispatcher${count === 1 ? '' : 's'}`;
    await world.setDispatchers(count);
    bench.progress(`${name}, warming up`);
    let events = await warmUp(bench, world, workload);
    rows.push(
      await measureCase(bench, name, async () => {
        const measured = await withRawReference(bench, () =>
          drain(world, workload, { events, raw: bench.raw }),
        );
        events = eventsFor(bench, measured.figures.ratePerSecond as number);
        requirePossible(bench, name, measured.figures.ratioToRaw as number, count);
        return measured;
      }),
    );
  }
  await world.setDispatchers(1);
  return rows;
}

/**
 * Runhook's client without a service is 2.9 times as fast as got with its default settings, and a dispatcher does
 * about as much work in addition, so a higher ratio to raw got is a measurement error.
 */
const RATIO_MAX = 2.2;

function requirePossible(bench: Bench, name: string, ratioToRaw: number, dispatchers: number): void {
  const possible = RATIO_MAX * Math.min(dispatchers, availableParallelism() * 0.75);
  if (ratioToRaw <= possible) return;
  bench.markVoid(
    `${name}: ${ratioToRaw.toFixed(2)} of raw got cannot be, ${possible.toFixed(2)} is the most`,
  );
}

/** Replaces the ratios to raw got at the beginning of the benchmark by those measured just before and just after. */
export async function withRawReference(
  bench: Bench,
  measure: () => Promise<Measured>,
  conditions?: RawConditions,
): Promise<Measured> {
  const raw = () => bench.measureRaw(conditions);
  const [{ figures, balance: ledger }, before, after] = await measureWithReference(raw, measure);
  const rawMicros = (before.cpuMicrosPerRequest + after.cpuMicrosPerRequest) / 2;
  const { ratePerSecond, cpuMicros, cpuRatioToRaw } = figures;
  const ratios: Figures = { ratioToRaw: (ratePerSecond as number) / meanRate(before, after) };
  if (cpuRatioToRaw !== undefined) ratios.cpuRatioToRaw = (cpuMicros as number) / rawMicros;
  return { figures: { ...figures, ...ratios }, balance: ledger };
}

/**
 * Measures the reference just before and just after, because the speed of a shared machine may change by a third within
 * minutes.
 */
export async function measureWithReference<Result, Reference>(
  measureReference: () => Promise<Reference>,
  measure: () => Promise<Result>,
): Promise<[result: Result, before: Reference, after: Reference]> {
  const before = await measureReference();
  const result = await measure();
  return [result, before, await measureReference()];
}

export function meanRate(before: { ratePerSecond: number }, after: { ratePerSecond: number }): number {
  return (before.ratePerSecond + after.ratePerSecond) / 2;
}

/**
 * Warms up every dispatcher, because code that has not been compiled yet is slow. Returns the number of events for one
 * measurement.
 */
export async function warmUp(bench: Bench, world: World, workload: Workload): Promise<number> {
  const events = Math.round(
    Math.min(bench.raw.ratePerSecond * 3, (bench.raw.ratePerSecond * bench.runMs) / 1_000),
  );
  const { figures } = await drain(world, workload, { events, raw: bench.raw });
  return eventsFor(bench, figures.ratePerSecond as number);
}

function eventsFor(bench: Bench, ratePerSecond: number): number {
  return Math.max(500, Math.round((ratePerSecond * bench.runMs) / 1_000));
}

const SUBSCRIPTIONS = [1, 10, 1_000];
const ACCOUNTS_MAX = 20;

/** Measures one event with different numbers of subscriptions, each at a separate endpoint. */
export async function fanOut(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  await world.setDispatchers(1);
  const rows: Row[] = [];
  for (const subscriptionsPerAccount of SUBSCRIPTIONS) {
    const accounts = Math.max(1, Math.floor(ACCOUNTS_MAX / subscriptionsPerAccount));
    const name = `1 event, ${subscriptionsPerAccount} subscription${subscriptionsPerAccount === 1 ? '' : 's'}`;
    bench.progress(`${name}, setting up`);
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts, subscriptionsPerAccount }]);
    const deliveries = (bench.raw.ratePerSecond * bench.runMs) / 1_000;
    const events = Math.max(2, Math.round(deliveries / subscriptionsPerAccount));
    bench.progress(`${name}, warming up`);
    await drain(world, workload, { events: Math.ceil(events / 4), raw: bench.raw });
    rows.push(await measureCase(bench, name, () => drain(world, workload, { events, raw: bench.raw })));
  }
  return { name: 'fan-out', rows };
}

/** The measurement begins and ends at these shares of the arrivals: at the start and the end not all parts are busy. */
const FROM_SHARE = 0.15;
const TO_SHARE = 0.9;
const POLL_MS = 20;
const STALL_MS = 20_000;

/**
 * Measures the rate at which a full queue is delivered: the queue is paused, filled and resumed, so that publishing
 * does not use the machine during the measurement.
 */
export async function drain(
  world: World,
  workload: Workload,
  options: { events: number; raw: RawReference; shards?: readonly number[] },
): Promise<Measured> {
  const { events, raw, shards = [0] } = options;
  const backend = createQueueBackend(world.queueUrl);
  const queues = shards.map((shard) => backend.createQueue(JOB_RUN_EVENTS, undefined, shard));
  try {
    await Promise.all(queues.map((queue) => queue.pause()));
    const prefill = { count: events, templates: workload.templates };
    const published = await world.publisher.call<Published>('prefill', prefill);
    const expected = workload.expected(published);
    await takeArrivals(world);
    await Promise.all(queues.map((queue) => queue.resume()));
    const middle = await measureMiddle(world, expected.length);
    await settle(world, workload);
    const arrivals = await takeArrivals(world);
    return { figures: drainFigures(middle, raw), balance: balance(expected, arrivals) };
  } finally {
    await Promise.all(queues.map((queue) => queue.close()));
  }
}

interface Snapshot {
  atMs: number;
  delivered: number;
  cpu: CpuReading | null;
}

/**
 * Returns the state at {@link FROM_SHARE} and {@link TO_SHARE} of the arrivals, once all have arrived or arrivals have
 * stalled.
 */
export async function measureMiddle(
  world: World,
  expectedCount: number,
  stallMs = STALL_MS,
): Promise<[Snapshot, Snapshot]> {
  let from: Snapshot | undefined;
  let to: Snapshot | undefined;
  let last = { count: 0, atMs: performance.now() };
  while (true) {
    const count = await world.receiver.call<number>('count');
    const snapshot = () => ({ atMs: performance.now(), delivered: count, cpu: world.readCpu() });
    if (from === undefined && count >= expectedCount * FROM_SHARE) from = snapshot();
    if (to === undefined && count >= expectedCount * TO_SHARE) to = snapshot();
    if (count > last.count) last = { count, atMs: performance.now() };
    if (count >= expectedCount || performance.now() - last.atMs > stallMs) break;
    await wait(POLL_MS);
  }
  const end = { atMs: performance.now(), delivered: last.count, cpu: world.readCpu() };
  return [from ?? end, to ?? end];
}

export function drainFigures([from, to]: [Snapshot, Snapshot], raw: RawReference): Figures {
  const seconds = (to.atMs - from.atMs) / 1_000;
  const delivered = to.delivered - from.delivered;
  const ratePerSecond = delivered / seconds;
  return {
    ratePerSecond,
    ratioToRaw: ratePerSecond / raw.ratePerSecond,
    ...cpuFigures(from.cpu, to.cpu, delivered, seconds, raw),
  };
}

const SERVICE_GROUPS = ['dispatcher', 'redis', 'postgres'];

/** Returns CPU per delivery, by process; `cpuRatioToRaw` is for dispatcher, Redis and PostgreSQL in total. */
export function cpuFigures(
  before: CpuReading | null,
  after: CpuReading | null,
  deliveries: number,
  seconds: number,
  raw: RawReference,
): Figures {
  const use = cpuBetween(before, after);
  if (use === null || deliveries === 0) return {};
  const microsOf = (ms: number) => (ms * 1_000) / deliveries;
  const service = SERVICE_GROUPS.reduce((sum, name) => sum + (use.groups[name] ?? 0), 0);
  const figures: Figures = {
    cpuMicros: microsOf(service),
    cpuRatioToRaw: microsOf(service) / raw.cpuMicrosPerRequest,
    foreignCpuPercent: use.foreignMs / (seconds * 10),
  };
  for (const [name, ms] of Object.entries(use.groups)) {
    if (name !== 'bench') figures[`${name}CpuMicros`] = microsOf(ms);
  }
  figures.receiverCpuPercent = (use.groups.receiver ?? 0) / (seconds * 10);
  return figures;
}
