import { setTimeout as wait } from 'node:timers/promises';
import { createFailover, type Failover, needsRedis } from './failover.ts';
import type { Aftermath, Fault } from './faults.ts';
import { PoisonedTenant } from './poisoned-tenant.ts';
import { type SentinelServers, startSentinelServers } from './redis-sentinel.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Stores } from './servers.ts';
import { type StandbyServers, startStandbyServers } from './standby.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<Stores>;

/** Limit until the last delivery to the healthy endpoint of the other account is recorded. */
const HEALTHY_WITHIN_SECONDS = 10;

const nothing = async () => {};

/** Sends before, during and after the crash. The aftermath covers all of these events. */
async function sendPoison(
  world: World,
  kill: () => Promise<unknown> = nothing,
  recover: () => Promise<unknown> = nothing,
): Promise<Aftermath> {
  world.endpoint.invalidBodies.length = 0;
  const tenant = await PoisonedTenant.open(world);
  await tenant.send();
  await tenant.crash(kill, recover);
  await tenant.waitUntilReachable();
  await tenant.send();
  return () => tenant.problems();
}

const waitDowntime = (random: SeededRandom) => wait(random.between(300, 1_500));

/** Faults that another account of the same installation causes by sending data that stores reject. */
export const POISON: Fault[] = [
  {
    name: 'another account sends text that stores reject',
    healthyWithinSeconds: HEALTHY_WITHIN_SECONDS,
    stallSecondsMax: HEALTHY_WITHIN_SECONDS,
    strike: (world) => sendPoison(world),
  },
  {
    name: 'another account sends text that stores reject, then PostgreSQL, Redis and a dispatcher are killed',
    losesLocks: ({ backend }) => backend === 'PostgreSQL',
    healthyWithinSeconds: HEALTHY_WITHIN_SECONDS,
    strike: (world, random) =>
      sendPoison(
        world,
        // The victims are one function, because the other dispatcher keeps running and its connections stay open.
        () =>
          world.kill(() =>
            Promise.all([
              world.servers.killPostgres(),
              world.servers.killRedis(),
              world.dispatchers[0]?.kill(),
            ]),
          ),
        async () => {
          await waitDowntime(random);
          await Promise.all([world.servers.restartPostgres(), world.servers.restartRedis()]);
          await world.startDispatcher(0);
        },
      ),
  },
];

/** Replaces PostgreSQL by its replica while such data are sent. */
const WITH_POSTGRES = (['PostgreSQL', 'Redis'] as const).map((backend) =>
  createFailover<StandbyServers>('postgres', {
    name: `PostgreSQL, synchronous, queue on ${backend}: the primary killed while text arrives that stores reject`,
    backend,
    healthyWithinSeconds: HEALTHY_WITHIN_SECONDS,
    start: () => startStandbyServers(backend, { isSynchronous: true }),
    skipReason: () => (backend === 'Redis' ? needsRedis() : null),
    strike: (world) =>
      sendPoison(
        world,
        () => world.kill(world.servers.killPrimary),
        () => world.servers.promote(world),
      ),
  }),
);

/** Replaces Redis by its replica while such data are sent. */
const WITH_REDIS = createFailover<SentinelServers>('sentinel', {
  name: 'Sentinel: the master killed while text arrives that stores reject',
  healthyWithinSeconds: HEALTHY_WITHIN_SECONDS,
  start: startSentinelServers,
  skipReason: needsRedis,
  strike: (world) =>
    sendPoison(
      world,
      () => world.kill(world.servers.killMaster),
      async () => {
        await world.servers.waitUntilPromoted();
        await world.servers.restartMaster();
      },
    ),
});

export const POISON_FAILOVERS: Failover[] = [...WITH_POSTGRES, WITH_REDIS];
