import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TcpProxy } from '@runhook/testing';
import type { Fault } from './faults.ts';
import { isLong, type OtherDispatcher, type Proxies, type World } from './world.ts';

const STALL_MS = isLong ? 8_000 : 1_000;
const RESPONSE_LOSS_MS = 3_000;
const MIXED_VERSIONS_MS = 4_000;
const HOUR_MS = 3_600_000;
const CLOCK_PRELOAD = new URL('./clock-ahead.mjs', import.meta.url);

/** Faults in the connections between the services and their stores. */
export const NETWORK_FAULTS: Fault[] = [
  {
    name: 'the network before PostgreSQL stalls',
    usesProxies: true,
    drainedWithinSeconds: 120,
    losesLocks: ({ backend }) => backend === 'PostgreSQL',
    strike: (world) =>
      stall(world, ({ dispatcherDatabase, dispatcherQueue }) =>
        world.backend === 'Redis' ? [dispatcherDatabase] : [dispatcherDatabase, dispatcherQueue],
      ),
  },
  {
    name: 'the network before Redis stalls',
    usesProxies: true,
    only: 'Redis',
    drainedWithinSeconds: 120,
    strike: (world) => stall(world, ({ dispatcherQueue }) => [dispatcherQueue]),
  },
  {
    name: 'responses to COMMIT are lost',
    usesProxies: true,
    repeatsCalls: true,
    async strike(world) {
      const { managementDatabase, dispatcherDatabase } = requireProxies(world);
      for (const proxy of [managementDatabase, dispatcherDatabase]) proxy.dropResponsesTo('COMMIT');
      await wait(RESPONSE_LOSS_MS);
      await Promise.all([managementDatabase.restore(), dispatcherDatabase.restore()]);
    },
  },
];

/** Faults that a dispatcher with another clock or release causes. */
export const VERSIONS: Fault[] = [
  {
    name: "a dispatcher's clock is an hour ahead",
    drainedWithinSeconds: 120,
    strike: (world) => replaceDispatcher(world, withClockAhead(HOUR_MS)),
  },
  {
    name: "a dispatcher's clock is an hour behind",
    drainedWithinSeconds: 120,
    strike: (world) => replaceDispatcher(world, withClockAhead(-HOUR_MS)),
  },
  {
    name: 'an older release runs next to this one',
    skipReason: () =>
      OLDER_RELEASE === undefined
        ? 'no older release: npm run chaos -- --older-release <tag or commit>'
        : null,
    drainedWithinSeconds: 120,
    strike: (world) => replaceDispatcher(world, { checkout: OLDER_RELEASE as string }),
  },
];

function withClockAhead(aheadMs: number): OtherDispatcher {
  return {
    environment: {
      NODE_OPTIONS: `--import ${fileURLToPath(CLOCK_PRELOAD)}`,
      CLOCK_AHEAD_MS: String(aheadMs),
    },
  };
}

/** Path of the release that `npm run chaos` built. */
const OLDER_RELEASE = process.env.CHAOS_OLDER_CHECKOUT;

function requireProxies({ proxies }: World): Proxies {
  if (proxies === null) throw new Error('the services do not connect to their stores through proxies');
  return proxies;
}

/** Stalls connections: they stay open and transfer nothing. Afterwards new ones work, and those that were open never recover. */
async function stall(world: World, choose: (proxies: Proxies) => TcpProxy[]): Promise<void> {
  const stalled = choose(requireProxies(world));
  for (const proxy of stalled) proxy.stall();
  await wait(STALL_MS);
  await Promise.all(stalled.map((proxy) => proxy.restore()));
}

/** Replaces a dispatcher by another one for a while. */
async function replaceDispatcher(
  world: World,
  other: Parameters<World['startDispatcher']>[1],
): Promise<void> {
  const codes = [await world.dispatchers[0]?.stop()];
  await world.startDispatcher(0, other);
  await wait(MIXED_VERSIONS_MS);
  codes.push(await world.dispatchers[0]?.stop());
  await world.startDispatcher(0);
  if (codes.some((code) => code !== 0)) throw new Error(`dispatchers stopped with ${codes.join(', ')}`);
}
