import { createServiceToken } from '@runhook/database';
import { createQueueBackend, openEventQueue } from '@runhook/queue';
import { seedAccount } from '@runhook/testing';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { cpuBetween } from '../measure/cpu.ts';
import type { Balance } from '../measure/ledger.ts';
import { spreadOf } from '../measure/timing.ts';
import { startProgram } from '../programs/program.ts';
import type { Published } from '../programs/publisher.ts';
import type { Reported, ReporterSettings } from '../programs/reporter.ts';
import { createWorkload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { HEALTHY_ACCOUNTS } from './throughput.ts';

const CALLERS = 32;
const PUBLISHED_EVENTS = 40_000;

/** Events that are accepted a second. No dispatcher runs: this is how fast they come in, not how fast they go out. */
export async function ingest(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('redis', {
    management: true,
    environment: { API_RATE_LIMIT_PER_MINUTE: '10000000' },
  });
  try {
    return { name: 'ingest', rows: [await restRow(bench, world), await publisherRow(bench, world)] };
  } finally {
    await world.close();
  }
}

async function restRow(bench: Bench, world: World): Promise<Row> {
  const { id: accountId, jobs } = await seedAccount(world.database);
  const runner = { accountId, name: 'bench', permissionSets: ['account_admin' as const] };
  const { token } = await createServiceToken(world.database.prisma, runner);
  const settings: ReporterSettings = {
    url: `${world.management?.url}/api/v2/accounts/${accountId}/runs/`,
    token,
    jobId: jobs[0]?.id ?? 0,
    callers: CALLERS,
  };
  const reporter = startProgram('reporter');
  let acceptedInAll = 0;
  const report = async (durationMs: number) => {
    const reported = await reporter.call<Reported>('run', { ...settings, durationMs });
    acceptedInAll += reported.accepted;
    return reported;
  };
  try {
    await report(Math.min(2_000, bench.runMs));
    return await measureCase(bench, 'runs started over REST', async (): Promise<Measured> => {
      const before = world.readCpu();
      const { accepted, seconds, latenciesMs } = await report(bench.runMs);
      const use = cpuBetween(before, world.readCpu());
      const { p50, p99 } = spreadOf(latenciesMs);
      const stored = await storedEvents(world, accountId);
      const figures = {
        ratePerSecond: accepted / seconds,
        p50Ms: p50,
        p99Ms: p99,
        managementCpuMicros: ((use?.groups.management ?? 0) * 1_000) / accepted,
        postgresCpuMicros: ((use?.groups.postgres ?? 0) * 1_000) / accepted,
      };
      return { figures, balance: accounted(accepted, acceptedInAll - stored) };
    });
  } finally {
    await reporter.stop();
  }
}

async function publisherRow(bench: Bench, world: World): Promise<Row> {
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
  const count = bench.isQuick ? 2_000 : PUBLISHED_EVENTS;
  const queuedBefore = await queuedEvents(world);
  let inAll = 0;
  return await measureCase(
    bench,
    'published straight onto the queue, 500 a call',
    async (): Promise<Measured> => {
      const before = world.readCpu();
      const prefill = { count, templates: workload.templates };
      const { intendedMs, acceptedMs } = await world.publisher.call<Published>('prefill', prefill);
      const use = cpuBetween(before, world.readCpu());
      inAll += count;
      const seconds = ((acceptedMs.at(-1) ?? 0) - (intendedMs[0] ?? 0)) / 1_000;
      const figures = {
        ratePerSecond: count / seconds,
        publisherCpuMicros: ((use?.groups.publisher ?? 0) * 1_000) / count,
        redisCpuMicros: ((use?.groups.redis ?? 0) * 1_000) / count,
      };
      return { figures, balance: accounted(count, inAll - ((await queuedEvents(world)) - queuedBefore)) };
    },
  );
}

/** Nothing is delivered here: accepted means that it is stored. */
function accounted(accepted: number, missing: number): Balance {
  return {
    published: accepted,
    delivered: 0,
    explained: accepted - missing,
    repeated: 0,
    missing: Math.max(0, missing),
    unknown: Math.max(0, -missing),
    latenciesMs: new Float64Array(),
  };
}

async function storedEvents({ database }: World, accountId: number): Promise<number> {
  const text = 'SELECT count(*) FROM events WHERE account_id = $1';
  const { rows } = await database.pool.query<{ count: string }>(text, [accountId]);
  return Number(rows[0]?.count);
}

async function queuedEvents({ queueUrl }: World): Promise<number> {
  const queue = openEventQueue(createQueueBackend(queueUrl), () => undefined);
  try {
    const { waiting = 0, paused = 0, active = 0 } = await queue.counts();
    return waiting + paused + active;
  } finally {
    await queue.close();
  }
}
