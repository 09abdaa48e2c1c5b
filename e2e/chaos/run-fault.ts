import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '@runhook/testing';
import type { Fault } from './faults.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { startLoad } from './load.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Stores } from './servers.ts';
import { readLastHealthyMs, waitUntilDrained, waitUntilQueuesEmpty } from './wait-until-drained.ts';
import { isLong, type World } from './world.ts';

/** The ledger of one fault, as a row of the table. */
export interface Row extends Ledger {
  backend: string;
  fault: string;
  failedCalls: number;
  /** Seconds from the end of the fault until the last delivery has ended. The load continues at first. */
  drainedSeconds: number;
  /** Seconds from the end of the fault to the record of the last delivery to the healthy endpoint; not measured in an upgrade. */
  healthySeconds?: number;
}

const BEFORE_MS = isLong ? { min: 1_500, max: 3_500 } : { min: 500, max: 1_000 };
const AFTER_MS = isLong ? 1_000 : 500;
/** Minimum number of accepted events, until which the load continues on a busy machine. */
const PUBLISHED_MIN = 21;
const DRAIN_TIMEOUT_MS = 240_000;
/** A job in flight at a kill is resumed after its lock has expired (15 s) and the stalled check has run (every 7.5 s). */
const LOCK_EXPIRY_MS = 22_500;

/** Puts the world under load, injects the fault at a random time, and counts the results once nothing is pending. */
export async function runFault<Of extends Stores>(
  world: World<Of>,
  fault: Fault<Of>,
  random: SeededRandom,
): Promise<Row> {
  world.inFlightAtKills.clear();
  world.killedAtMs = 0;
  world.recordReplacedAtMs = 0;
  world.endpoint.arrivals.length = 0;
  const { publishesDirectly = true, repeatsCalls = false, mayLose = 'nothing', runIntervalMs } = fault;
  const load = await startLoad(world, { publishesDirectly, repeatsCalls, runIntervalMs });
  const beforeMs = random.between(BEFORE_MS.min, BEFORE_MS.max);
  const deactivation = wait(random.between(500, beforeMs + 500)).then(() => load.deactivateLeaving());
  try {
    await wait(beforeMs);
    const aftermath = await fault.strike(world, random, load);
    const [endedAt, endedAtMs] = [performance.now(), Date.now()];
    await wait(AFTER_MS);
    await eventually(() => {
      if (load.accepted.size < PUBLISHED_MIN) throw new Error(`${load.accepted.size} events were accepted`);
    });
    await Promise.all([load.stop(), deactivation]);
    // The record may have lost the deactivation of the subscription.
    if (mayLose === 'either') await load.deactivateLeaving(true);
    await waitUntilDrained(world, load, DRAIN_TIMEOUT_MS, mayLose);
    const drainedSeconds = (performance.now() - endedAt) / 1_000;
    await waitUntilQueuesEmpty(world, DRAIN_TIMEOUT_MS);
    // The first wait did not include events that existed in the queue only.
    if (mayLose !== 'nothing') await waitUntilDrained(world, load, DRAIN_TIMEOUT_MS, mayLose);
    const ledger = await createLedger(world, load, {
      retriesPerDelivery: fault.losesLocks?.(world) ? 1 : 0,
      mayLose,
    });
    const healthySeconds = ((await readLastHealthyMs(world, load)) - endedAtMs) / 1_000;
    const { healthyWithinSeconds = Number.POSITIVE_INFINITY } = fault;
    // Starts after the end of the fault if a job in flight at a kill may still be locked.
    const fromSeconds = Math.max(0, (world.killedAtMs + LOCK_EXPIRY_MS - endedAtMs) / 1_000);
    if (isLong && healthySeconds > fromSeconds + healthyWithinSeconds)
      ledger.problems.push(`the last delivery to the healthy endpoint took ${healthySeconds.toFixed(1)} s`);
    if (aftermath) ledger.problems.push(...(await aftermath()));
    if (repeatsCalls && ledger.uncertain > 0)
      ledger.problems.push(`${ledger.uncertain} events were created by repeated calls`);
    const { backend } = world;
    return {
      backend,
      fault: fault.name,
      failedCalls: load.failedCalls,
      drainedSeconds,
      healthySeconds,
      ...ledger,
    };
  } finally {
    await load.stop();
    await deactivation.catch(() => undefined);
  }
}
