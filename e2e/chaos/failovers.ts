import { spawnSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import type { Fault } from './faults.ts';
import { type PartitionServers, startPartitionServers, whyNoNetwork } from './partition.ts';
import { type ClusterServers, startClusterServers } from './redis-cluster.ts';
import { type SentinelServers, startSentinelServers } from './redis-sentinel.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { BackendName, Stores } from './servers.ts';
import { type StandbyServers, startStandbyServers } from './standby.ts';
import { type Row, strike } from './strike.ts';
import { openWorldOn, type WorldOptions } from './world.ts';

/** Another server takes the place of one, in a world of its own. */
export interface Failover {
  /** What `npm run chaos -- --topology` calls it by. */
  topology: 'sentinel' | 'cluster' | 'partition' | 'postgres' | 'shards';
  name: string;
  /** Why it cannot happen here; null when it can. */
  leftOut(): string | null;
  run(random: SeededRandom): Promise<Row>;
}

/** After the replica has taken over. */
const CUT_FOR_MS = 5_000;
/** Events that are published to a master that is cut off. */
const BESIDE = 400;
/** For so long what is acknowledged is on the master alone. */
const BEHIND_FOR_MS = 2_500;

const needsRedis = () => (findRedisServer() === null ? 'no redis-server is on the path' : null);
const needsRedisCli = () =>
  needsRedis() ?? (spawnSync('redis-cli', ['--version']).error ? 'no redis-cli is on the path' : null);

function failover<Of extends Stores>(
  topology: Failover['topology'],
  {
    start,
    leftOut,
    backend = 'Redis',
    worldOf = () => ({}),
    ...fault
  }: Fault<Of> & {
    start: () => Promise<Of>;
    leftOut: () => string | null;
    backend?: BackendName;
    worldOf?: (servers: Of) => WorldOptions;
  },
): Failover {
  return {
    topology,
    name: fault.name,
    leftOut,
    async run(random) {
      const servers = await start();
      const world = await openWorldOn(servers, backend, random, worldOf(servers));
      try {
        return await strike(world, fault, random);
      } finally {
        await world.close();
      }
    },
  };
}

const SENTINEL: Failover[] = [
  failover<SentinelServers>('sentinel', {
    name: 'Sentinel: the master killed',
    start: startSentinelServers,
    leftOut: needsRedis,
    async strike(world) {
      await world.kill(world.servers.killMaster);
      return await replaced(world.servers);
    },
  }),
  failover<SentinelServers>('sentinel', {
    name: 'Sentinel: the master killed with unwritten seconds',
    start: startSentinelServers,
    leftOut: needsRedis,
    mayLose: 'direct',
    async strike(world) {
      await fallBehind(world.servers);
      await world.kill(world.servers.killMaster);
      return await replaced(world.servers);
    },
  }),
  failover<SentinelServers>('sentinel', {
    name: 'Sentinel: the same, while no dispatcher worked',
    start: startSentinelServers,
    leftOut: needsRedis,
    mayLose: 'direct',
    async strike(world) {
      await Promise.all(world.dispatchers.map((dispatcher) => dispatcher.stop()));
      await fallBehind(world.servers);
      await world.kill(world.servers.killMaster);
      const aftermath = await replaced(world.servers);
      await Promise.all(world.dispatchers.map((_, index) => world.startDispatcher(index)));
      return aftermath;
    },
  }),
];

async function fallBehind({ stopReplica, behindBytes }: SentinelServers): Promise<void> {
  await stopReplica();
  await wait(BEHIND_FOR_MS);
  if ((await behindBytes()) === 0) throw new Error('the replica is not behind');
}

/** Once the replica is master, the first one comes back; in the end it must be a replica. */
async function replaced({ promoted, restartMaster, roleOfFirst }: SentinelServers) {
  await promoted();
  await restartMaster();
  return async () => {
    await eventually(async () => expect(await roleOfFirst()).toBe('slave'));
    return [];
  };
}

const CLUSTER: Failover[] = [
  failover<ClusterServers>('cluster', {
    name: 'Cluster: the master of the keys killed',
    start: startClusterServers,
    leftOut: needsRedisCli,
    async strike(world) {
      await world.kill(world.servers.killMaster);
      await world.servers.promoted();
      await world.servers.restartKilled();
    },
  }),
  failover<ClusterServers>('cluster', {
    name: 'Cluster: the slot of the keys moved',
    start: startClusterServers,
    leftOut: needsRedisCli,
    async strike(world) {
      world.killedAtMs = Date.now();
      await world.servers.reshard();
    },
  }),
];

/** The record's own server is killed, and its replica takes its place; the queue is on another server, or goes with it. */
const POSTGRES: Failover[] = (['PostgreSQL', 'Redis'] as const).flatMap((backend) => [
  failover<StandbyServers>('postgres', {
    name: `PostgreSQL, synchronous, queue on ${backend}: the primary killed`,
    backend,
    start: () => startStandbyServers(backend, { isSynchronous: true }),
    leftOut: () => (backend === 'Redis' ? needsRedis() : null),
    async strike(world) {
      await world.kill(world.servers.killPrimary);
      await world.servers.promote(world);
    },
  }),
  failover<StandbyServers>('postgres', {
    name: `PostgreSQL, asynchronous and behind, queue on ${backend}: the primary killed`,
    backend,
    start: () => startStandbyServers(backend, { isSynchronous: false }),
    leftOut: () => (backend === 'Redis' ? needsRedis() : null),
    mayLose: 'either',
    async strike(world) {
      await world.servers.stopReplication();
      await wait(BEHIND_FOR_MS);
      await world.kill(world.servers.killPrimary);
      await world.servers.promote(world);
    },
  }),
]);

/** The network is cut in two, and healed after a while. */
const PARTITION: Failover[] = [true, false].map((withRecord) =>
  failover<PartitionServers>('partition', {
    name: `Sentinel: the network cut, the master and a dispatcher ${withRecord ? 'alone' : 'with the record'} on one side`,
    start: startPartitionServers,
    leftOut: () => needsRedis() ?? whyNoNetwork(),
    worldOf: ({ first, endpointHost, environment }) => ({ first, endpointHost, environment }),
    mayLose: 'direct',
    // Each side has a job for what was waiting, and both sides' dispatchers live.
    losesLocks: () => true,
    async strike(world, _random, load) {
      const { cut, heal, promoted, besideUrl, roleOfFirst } = world.servers;
      await world.kill(async () => cut(withRecord));
      await load.publishTo(besideUrl, BESIDE);
      await promoted();
      await wait(CUT_FOR_MS);
      heal();
      await eventually(async () => expect(await roleOfFirst()).toBe('slave'));
    },
  }),
);

export const FAILOVERS: Failover[] = [...SENTINEL, ...CLUSTER, ...PARTITION, ...POSTGRES];
