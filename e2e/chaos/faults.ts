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

/** What is wrong after a fault, in words, once nothing waits. */
export type Aftermath = () => Promise<string[]>;

/** Something that goes wrong. */
export interface Fault<Of extends Stores = Servers> {
  name: string;
  /** Where it can happen; both when omitted. */
  only?: BackendName;
  /** False: what was published straight onto the queue may be lost by its nature (ADR 10). */
  publishesDirectly?: boolean;
  /** Callers leave it to Runhook to number their runs, and repeat what failed under its Idempotency-Key. */
  repeatsCalls?: boolean;
  /**
   * Locks of jobs may run out while nothing can be recorded, so that a job is taken over from an owner who has sent its
   * request and cannot say so: one more of each may come, as docs/reliability.md tells.
   */
  losesLocks?: (world: World<Of>) => boolean;
  /** What is counted as lost instead of missing; nothing when omitted. */
  mayLose?: MayLose;
  /** Milliseconds between two runs of the load; as many as the load's default when omitted. */
  runEveryMs?: number;
  /** It is in the network: the services reach their stores by way of proxies. */
  byProxy?: boolean;
  /** From the fault's end until nothing waits, on a machine that does nothing else. */
  drainedWithinSeconds?: number;
  /**
   * Seconds until the last delivery to the healthy endpoint is recorded: from the fault's end, and after a kill from when what was in
   * flight may be taken up again. Retries of the endpoints that fail are not among it.
   */
  healthyWithinSeconds?: number;
  /** Of an event at the healthy endpoint, on such a machine. */
  stallSecondsMax?: number;
  /** Why it cannot happen here; null when it can. */
  leftOut?(): string | null;
  /** Resolves when everything runs again: the fault's end. */
  strike(world: World<Of>, random: SeededRandom, load: Load): Promise<void> | Promise<Aftermath>;
}

const away = (random: SeededRandom) => wait(random.between(300, 1_500));
const everyDispatcher = (world: World) => world.dispatchers.map((_, index) => world.startDispatcher(index));
const killsOf = (world: World) =>
  [world.management, ...world.dispatchers].map((service) => () => service.kill());

/** Something is killed, stopped or emptied. */
const CRASHES: Fault[] = [
  { name: 'none', strike: async () => undefined },
  {
    name: 'kill -9 management',
    async strike(world, random) {
      await world.kill(() => world.management.kill());
      await away(random);
      await world.startManagement();
    },
  },
  {
    name: 'kill -9 a dispatcher',
    async strike(world, random) {
      const index = random.between(0, world.dispatchers.length - 1);
      await world.kill(async () => await world.dispatchers[index]?.kill());
      await away(random);
      await world.startDispatcher(index);
    },
  },
  {
    name: 'kill -9 every service',
    async strike(world, random) {
      await world.kill(...killsOf(world));
      await away(random);
      await Promise.all([world.startManagement(), ...everyDispatcher(world)]);
    },
  },
  {
    name: 'SIGTERM, one after another',
    async strike(world) {
      const former = world.management;
      await world.startManagement();
      const codes = [await former.stop()];
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
      await away(random);
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
    async strike(world, random) {
      await world.kill(world.servers.killPostgres);
      await away(random);
      await world.servers.restartPostgres();
    },
  },
  {
    name: 'the receiver gone',
    async strike(world, random) {
      // An attempt that is cut in the middle has arrived, but its log may tell of the connection refused after that.
      await world.kill(world.endpoint.goAway);
      await away(random);
      await world.endpoint.comeBack();
    },
  },
  {
    name: 'all at once',
    async strike(world, random) {
      const { servers } = world;
      await world.kill(...killsOf(world), servers.killPostgres, servers.killRedis);
      await away(random);
      await Promise.all([servers.restartPostgres(), servers.restartRedis()]);
      await Promise.all([world.startManagement(), ...everyDispatcher(world)]);
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
