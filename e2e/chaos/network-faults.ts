import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TcpProxy } from '@runhook/testing';
import type { Fault } from './faults.ts';
import { isLong, type OtherDispatcher, type Proxies, type World } from './world.ts';

const STALLS_FOR_MS = isLong ? 8_000 : 1_000;
const LOSES_FOR_MS = 3_000;
const RUNS_BESIDE_MS = 4_000;
const HOUR_MS = 3_600_000;
const CLOCK_AHEAD = new URL('./clock-ahead.mjs', import.meta.url);

/** Lists faults in the connections between the services and their stores. */
export const NETWORK_FAULTS: Fault[] = [
  {
    name: 'the network before PostgreSQL stalls',
    byProxy: true,
    drainedWithinSeconds: 120,
    losesLocks: ({ backend }) => backend === 'PostgreSQL',
    strike: (world) =>
      stall(world, ({ dispatcherDatabase, dispatcherQueue }) =>
        world.backend === 'Redis' ? [dispatcherDatabase] : [dispatcherDatabase, dispatcherQueue],
      ),
  },
  {
    name: 'the network before Redis stalls',
    byProxy: true,
    only: 'Redis',
    drainedWithinSeconds: 120,
    strike: (world) => stall(world, ({ dispatcherQueue }) => [dispatcherQueue]),
  },
  {
    name: 'responses to COMMIT are lost',
    byProxy: true,
    repeatsCalls: true,
    async strike(world) {
      const { managementDatabase, dispatcherDatabase } = proxiesOf(world);
      for (const proxy of [managementDatabase, dispatcherDatabase]) proxy.loseAnswersTo('COMMIT');
      await wait(LOSES_FOR_MS);
      await Promise.all([managementDatabase.restore(), dispatcherDatabase.restore()]);
    },
  },
];

/** Lists faults by a dispatcher with another clock or release. */
export const VERSIONS: Fault[] = [
  {
    name: "a dispatcher's clock is an hour ahead",
    drainedWithinSeconds: 120,
    strike: (world) => replaceOne(world, clockAhead(HOUR_MS)),
  },
  {
    name: "a dispatcher's clock is an hour behind",
    drainedWithinSeconds: 120,
    strike: (world) => replaceOne(world, clockAhead(-HOUR_MS)),
  },
  {
    name: 'an older release runs next to this one',
    leftOut: () =>
      OLDER_RELEASE === undefined ? 'no older release: npm run chaos -- --older <tag or commit>' : null,
    drainedWithinSeconds: 120,
    strike: (world) => replaceOne(world, { checkout: OLDER_RELEASE as string }),
  },
];

function clockAhead(aheadMs: number): OtherDispatcher {
  return {
    environment: { NODE_OPTIONS: `--import ${fileURLToPath(CLOCK_AHEAD)}`, CLOCK_AHEAD_MS: String(aheadMs) },
  };
}

/** Path of the release that `npm run chaos` built. */
const OLDER_RELEASE = process.env.CHAOS_OLDER;

function proxiesOf({ proxies }: World): Proxies {
  if (proxies === null) throw new Error('the services do not connect to their stores through proxies');
  return proxies;
}

/** Stalls connections: they stay open and transfer nothing. Afterwards new ones work, and those that were open never recover. */
async function stall(world: World, choose: (proxies: Proxies) => TcpProxy[]): Promise<void> {
  const stalled = choose(proxiesOf(world));
  for (const proxy of stalled) proxy.stall();
  await wait(STALLS_FOR_MS);
  await Promise.all(stalled.map((proxy) => proxy.restore()));
}

/** Replaces a dispatcher by another one for a while. */
async function replaceOne(world: World, other: Parameters<World['startDispatcher']>[1]): Promise<void> {
  const codes = [await world.dispatchers[0]?.stop()];
  await world.startDispatcher(0, other);
  await wait(RUNS_BESIDE_MS);
  codes.push(await world.dispatchers[0]?.stop());
  await world.startDispatcher(0);
  if (codes.some((code) => code !== 0)) throw new Error(`dispatchers stopped with ${codes.join(', ')}`);
}
