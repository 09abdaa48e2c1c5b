import { setTimeout as wait } from 'node:timers/promises';
import { createEventPublisher } from '@runhook/publisher';
import { exampleEvent, seedAccount, seedSubscription } from '@runhook/testing';
import { type Bench, measureCase, type Row } from '../bench.ts';
import { createWorkload, publishBurst } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { openLoop } from './latency.ts';

/** Event rate of the account that is measured. */
const EVENTS_PER_SECOND = 20;
const WARM_UP_MS = 3_000;

/**
 * The account that is active in parallel has 1,000 webhooks with 1,000 jobs each; every 250 ms one of the webhooks is
 * changed and an event is published.
 */
const WEBHOOKS = 1_000;
const JOBS_PER_WEBHOOK = 1_000;
const CHANGE_INTERVAL_MS = 250;

const BASELINE = 'an account, baseline';
const CHANGING = 'in parallel with 1,000 changing webhooks';

/** Minimum duration of a measurement: the 99th percentile of a shorter one would depend on one or two events. */
const DURATION_MIN_MS = 30_000;
const BURST_EVENTS = 15_000;
const BURST_EVENTS_QUICK = 200;
/** The endpoint for the other account's burst, by the behaviour of the receiver. */
const BURSTS = [
  { name: 'in parallel with 15,000 events for an endpoint that takes 200 ms', behaviour: 'after-200' },
  { name: 'in parallel with 15,000 events for an endpoint that hangs', behaviour: 'hanging' },
];

/** Measures the latency of an account, alone and in parallel with another account in the same services. */
export async function accountInParallel(bench: Bench): Promise<Row[]> {
  bench.progress(`${BASELINE}, setting up`);
  const world = await bench.openWorld('redis');
  try {
    await world.setDispatchers(1);
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: 1 }]);
    const durationMs = bench.isQuick ? bench.runMs : Math.max(bench.runMs, DURATION_MIN_MS);
    const load = { ratePerSecond: EVENTS_PER_SECOND, durationMs, raw: bench.raw };
    const warmUp = { ...load, durationMs: Math.min(bench.runMs, WARM_UP_MS) };
    await openLoop(world, workload, warmUp);
    const rows = [await measureCase(bench, BASELINE, () => openLoop(world, workload, load))];
    const stop = await startChanges(world);
    try {
      // The first event of the other account loads its webhooks into the cache.
      await openLoop(world, workload, warmUp);
      rows.push(await measureCase(bench, CHANGING, () => openLoop(world, workload, load)));
    } finally {
      await stop();
    }
    const count = bench.isQuick ? BURST_EVENTS_QUICK : BURST_EVENTS;
    for (const { name, behaviour } of BURSTS) {
      const addBacklog = () => publishBurst(world, count, behaviour);
      rows.push(await measureCase(bench, name, () => openLoop(world, workload, { ...load, addBacklog })));
    }
    return rows;
  } finally {
    await world.killDispatchers();
    await world.close();
  }
}

/** Returns a function that stops the changes and throws their error, if any. */
async function startChanges(world: World): Promise<() => Promise<void>> {
  const { id: accountId, jobs } = await seedAccount(world.database);
  const { id } = await seedSubscription(world.database, { accountId, clientUrl: 'http://127.0.0.1:1/' });
  // No webhook contains the job of the events: each fan-out examines all of them, but no request is sent that would use
  // the machine.
  await world.database.pool.query(
    `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active,
                                hmac_secret_ciphertext)
     SELECT 'wsu_' || account_id || '_' || n, account_id, name, '', event_types,
            (SELECT array_agg(1000000 + n * 1000 + job) FROM generate_series(1, ${JOBS_PER_WEBHOOK}) AS job),
            client_url, true, hmac_secret_ciphertext
     FROM subscriptions, generate_series(1, ${WEBHOOKS}) AS n WHERE id = $1`,
    [id],
  );
  await world.database.prisma.subscription.delete({ where: { id } });
  const publisher = createEventPublisher({ queueUrl: world.queueUrl });
  let isStopped = false;
  async function change(): Promise<void> {
    for (let n = 0; !isStopped; n += 1) {
      const name = `changed ${n} times`;
      const next = wait(CHANGE_INTERVAL_MS);
      await world.database.prisma.subscription.update({
        where: { id: `wsu_${accountId}_${1 + (n % WEBHOOKS)}` },
        data: { name },
      });
      await publisher.publish(exampleEvent('job.run.completed', jobs[0] as (typeof jobs)[number]));
      await next;
    }
  }
  const changing = change();
  // The no-op catch keeps Node from reporting an unhandled rejection before stop() awaits it.
  changing.catch(() => undefined);
  return async () => {
    isStopped = true;
    await changing.finally(() => publisher.close());
  };
}
