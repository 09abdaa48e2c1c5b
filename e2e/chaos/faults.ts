import { setTimeout as wait } from 'node:timers/promises';
import { GROWN_DEFAULT } from './grown-default.ts';
import type { MayLose } from './ledger.ts';
import type { Load } from './load.ts';
import { NEIGHBOURS } from './neighbours.ts';
import { NETWORK_FAULTS, VERSIONS } from './network-faults.ts';
import { POISON } from './poison.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { BackendName, Servers, Stores } from './servers.ts';
import { STORE_FAULTS } from './store-faults.ts';
import type { World } from './world.ts';

/** Resolves with a sentence for each problem, once no delivery is pending. */
export type Aftermath = () => Promise<string[]>;

/** A fault that the tests inject. */
export interface Fault<Of extends Stores = Servers> {
  name: string;
  /** Back end that the fault applies to; both when omitted. */
  only?: BackendName;
  /** False if events that are published directly onto the queue may be lost (ADR 10). */
  publishesDirectly?: boolean;
  /** Callers omit the run id, and repeat failed calls with their Idempotency-Key. */
  repeatsCalls?: boolean;
  /**
   * Whether locks of jobs may expire while nothing can be recorded, or a crash of PostgreSQL may lose that a job was taken (ADR 27).
   * Another dispatcher then takes over the job of a live owner that has sent its request, so one more request of each delivery
   * may arrive (docs/reliability.md).
   */
  losesLocks?: (world: World<Of>) => boolean;
  /** Events that count as lost instead of missing; none when omitted. */
  mayLose?: MayLose;
  /** Milliseconds between two runs of the load; the default of the load when omitted. */
  runIntervalMs?: number;
  /** The fault is in the network: the services connect to their stores through proxies. */
  usesProxies?: boolean;
  /** Seconds from the end of the fault until nothing is pending, on a machine without other load. */
  drainedWithinSeconds?: number;
  /**
   * Seconds until the last delivery to the healthy endpoint is recorded: from the end of the fault, and after a kill from the time
   * when work in flight may be resumed. Retries of failing endpoints are not included.
   */
  healthyWithinSeconds?: number;
  /** Longest wait of an event for the healthy endpoint, on a machine without other load. */
  stallSecondsMax?: number;
  /** Returns the reason why the machine does not support the fault, or null. */
  skipReason?(): string | null;
  /** Resolves when everything runs again, which is the end of the fault. */
  strike(world: World<Of>, random: SeededRandom, load: Load): Promise<void> | Promise<Aftermath>;
}

const waitDowntime = (random: SeededRandom) => wait(random.between(300, 1_500));
const startAllDispatchers = (world: World) =>
  world.dispatchers.map((_, index) => world.startDispatcher(index));
const listKills = (world: World) =>
  [world.management, ...world.dispatchers].map((service) => () => service.kill());

/** Faults that kill, stop or empty a process or store. */
const CRASHES: Fault[] = [
  { name: 'none', strike: async () => undefined },
  {
    name: 'kill -9 management',
    async strike(world, random) {
      await world.kill(() => world.management.kill());
      await waitDowntime(random);
      await world.startManagement();
    },
  },
  {
    name: 'kill -9 a dispatcher',
    async strike(world, random) {
      const index = random.between(0, world.dispatchers.length - 1);
      await world.kill(async () => await world.dispatchers[index]?.kill());
      await waitDowntime(random);
      await world.startDispatcher(index);
    },
  },
  {
    name: 'kill -9 every service',
    async strike(world, random) {
      await world.kill(...listKills(world));
      await waitDowntime(random);
      await Promise.all([world.startManagement(), ...startAllDispatchers(world)]);
    },
  },
  {
    name: 'SIGTERM, one after another',
    async strike(world) {
      const previous = world.management;
      await world.startManagement();
      const codes = [await previous.stop()];
      for (const [index, dispatcher] of world.dispatchers.entries()) {
        codes.push(await dispatcher.stop());
        await world.startDispatcher(index);
      }
      if (codes.some((code) => code !== 0)) throw new Error(`services stopped with ${codes.join(', ')}`);
    },
  },
  {
    name: 'Redis killed',
    only: 'Redis',
    async strike(world, random) {
      await world.kill(world.servers.killRedis);
      await waitDowntime(random);
      await world.servers.restartRedis();
    },
  },
  {
    name: 'Redis FLUSHALL',
    only: 'Redis',
    publishesDirectly: false,
    strike: (world) => world.kill(() => world.servers.redis('FLUSHALL')),
  },
  {
    name: 'PostgreSQL killed',
    losesLocks: ({ backend }) => backend === 'PostgreSQL',
    async strike(world, random) {
      await world.kill(world.servers.killPostgres);
      await waitDowntime(random);
      await world.servers.restartPostgres();
    },
  },
  {
    name: 'the receiver stopped',
    async strike(world, random) {
      // An interrupted attempt has arrived, but the log may contain the connection that was refused afterwards.
      await world.kill(world.endpoint.shutDown);
      await waitDowntime(random);
      await world.endpoint.reopen();
    },
  },
  {
    name: 'all at once',
    async strike(world, random) {
      const { servers } = world;
      await world.kill(...listKills(world), servers.killPostgres, servers.killRedis);
      await waitDowntime(random);
      await Promise.all([servers.restartPostgres(), servers.restartRedis()]);
      await Promise.all([world.startManagement(), ...startAllDispatchers(world)]);
    },
  },
];

export const FAULTS: Fault[] = [
  ...CRASHES,
  ...STORE_FAULTS,
  ...NEIGHBOURS,
  ...POISON,
  ...NETWORK_FAULTS,
  ...VERSIONS,
  GROWN_DEFAULT,
];
