import { JOB_RUN_EVENTS } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { COUNTING_SETTINGS, withCosts } from '../measure/costs.ts';
import { balance } from '../measure/ledger.ts';
import { spreadOf } from '../measure/timing.ts';
import type { Program } from '../programs/program.ts';
import type { Reported } from '../programs/reports.ts';
import {
  listExpected,
  type RunnersOptions,
  type RunnersWorld,
  waitUntilDrained,
  withReporter,
  withRunnersWorld,
} from '../world/runners.ts';
import { takeArrivals } from '../world/workload.ts';
import { withDebianPostgres } from './debian.ts';
import { waitForArrivals } from './latency.ts';
import { createClosedLoop, measureDelivered, memoryFigures } from './reported.ts';
import { withRawReference } from './throughput.ts';

const EVENTS = 15_000;
const EVENTS_QUICK = 300;
const ACCOUNTS_MAX = 20;
/** Timeout of the calls that fill the backlog, which end earlier. */
const REPORTING_MAX_MS = 120_000;

const eventsOf = ({ isQuick }: Bench) => (isQuick ? EVENTS_QUICK : EVENTS);

interface Condition {
  name: string;
  options: RunnersOptions;
  /** Whether the dispatcher has delivered before; its queue is paused while the events are reported. */
  isWarm?: true;
}

/**
 * Measures the delivery rate of events that were reported over REST while no dispatcher ran. Each run has new services.
 */
export async function restBacklog(bench: Bench): Promise<ScenarioResult> {
  const one = withDebianPostgres(bench, { accounts: 1 });
  const conditions: Condition[] = [
    { name: 'one webhook, cold', options: one },
    { name: 'one webhook, warm', options: one, isWarm: true },
    {
      name: `${ACCOUNTS_MAX} webhooks, cold`,
      options: withDebianPostgres(bench, { accounts: ACCOUNTS_MAX }),
    },
    { name: "one webhook, cold, the images' PostgreSQL", options: { accounts: 1 } },
  ];
  return await withReporter(async (reporter) => {
    const rows: Row[] = [];
    for (const condition of conditions) {
      const raw = {
        // Long enough for raw got to send about as many requests as the scenario has events.
        durationMs: (1_000 * eventsOf(bench)) / bench.raw.ratePerSecond,
        endpoints: condition.options.accounts ?? ACCOUNTS_MAX,
        isCold: condition.isWarm !== true,
      };
      const measure = () => withBacklogWorld(bench, reporter, condition, (rest) => drainBacklog(bench, rest));
      rows.push(await measureCase(bench, condition.name, () => withRawReference(bench, measure, raw)));
    }
    rows.push(
      await measureCase(bench, 'one webhook, cold, counted', () => measureCountedBacklog(bench, reporter)),
    );
    return { name: 'rest-backlog', rows };
  });
}

async function withBacklogWorld(
  bench: Bench,
  reporter: Program,
  { options, isWarm = undefined }: Condition,
  work: (rest: RunnersWorld) => Promise<Measured>,
): Promise<Measured> {
  return await withRunnersWorld(bench, reporter, 'redis', options, async (rest) => {
    if (!isWarm) return await work(rest);
    await rest.world.setDispatchers(1);
    await measureDelivered(rest, createClosedLoop(rest, bench.runMs), 'run');
    await waitUntilDrained(rest);
    return await work(rest);
  });
}

/** Counts the operations of the stores from the start of the dispatcher until each delivery is recorded. */
async function measureCountedBacklog(bench: Bench, reporter: Program): Promise<Measured> {
  const options = withDebianPostgres(bench, { accounts: 1, postgresSettings: COUNTING_SETTINGS });
  return await withRunnersWorld(bench, reporter, 'redis', options, async (rest) => {
    const reported = await reportBacklog(bench, rest);
    const { result, costs } = await withCosts(rest.world, async () => {
      const measured = await deliverBacklog(rest, reported, () => rest.world.setDispatchers(1));
      await waitUntilDrained(rest);
      return { result: measured, events: measured.balance.delivered };
    });
    return { figures: costs, balance: result.balance };
  });
}

/** Reports the events while nothing is delivered, and then measures their delivery. */
export async function drainBacklog(bench: Bench, rest: RunnersWorld): Promise<Measured> {
  const { world } = rest;
  if (world.dispatchers.length === 0) {
    const reported = await reportBacklog(bench, rest);
    return await deliverBacklog(rest, reported, () => world.setDispatchers(1));
  }
  const queue = createQueueBackend(world.queueUrl).createQueue(JOB_RUN_EVENTS);
  try {
    await queue.pause();
    const reported = await reportBacklog(bench, rest);
    return await deliverBacklog(rest, reported, () => queue.resume());
  } finally {
    await queue.close();
  }
}

async function reportBacklog(bench: Bench, rest: RunnersWorld): Promise<Reported> {
  bench.progress('reporting a backlog');
  const loop = { ...createClosedLoop(rest, REPORTING_MAX_MS), callsMax: eventsOf(bench) };
  return await rest.reporter.call<Reported>('run', loop);
}

/** Measures the rate between the first and the last arrival, which includes the slow start of a cold process. */
async function deliverBacklog(
  rest: RunnersWorld,
  reported: Reported,
  start: () => Promise<unknown>,
): Promise<Measured> {
  const { world } = rest;
  const expected = await listExpected(rest, reported);
  await takeArrivals(world);
  await start();
  await waitForArrivals(world, expected.length);
  const arrivals = await takeArrivals(world);
  const ledger = balance(expected, arrivals);
  const { min: firstMs, max: lastMs } = spreadOf(arrivals.timesMs);
  return {
    figures: { ratePerSecond: ledger.delivered / ((lastMs - firstMs) / 1_000), ...memoryFigures(world) },
    balance: { ...ledger, missing: ledger.missing + reported.rejected },
  };
}
