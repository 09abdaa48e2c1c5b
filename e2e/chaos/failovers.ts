import { setTimeout as wait } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { shardPrefix } from '@runhook/contract';
import { eventually } from '@runhook/testing';
import { type Failover, failover, needsRedis, needsRedisCli } from './failover.ts';
import { type PartitionServers, startPartitionServers, whyNoNetwork } from './partition.ts';
import { POISON_FAILOVERS } from './poison.ts';
import { type ClusterServers, startClusterServers } from './redis-cluster.ts';
import { type SentinelServers, startSentinelServers } from './redis-sentinel.ts';
import { SHARDED } from './sharded.ts';
import { type StandbyServers, startStandbyServers } from './standby.ts';

/** Applies after the replica has been promoted. */
const CUT_FOR_MS = 5_000;
/** Number of events that are published to an isolated master. */
const BESIDE = 400;
/** For this time acknowledged writes exist on the master only. */
const BEHIND_FOR_MS = 2_500;

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
    name: 'Sentinel: the master killed with unreplicated writes',
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
    name: 'Sentinel: the master killed with unreplicated writes, while no dispatcher runs',
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
  if ((await behindBytes()) === 0) throw new Error('the replica does not lag');
}

/** Restarts the first master after the replica was promoted; at the end it must be a replica. */
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
      await world.kill(() => world.servers.killMasterOf(shardPrefix(0)));
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

/** Kills the primary of the record and promotes its replica. The queue is on another server, or fails with it. */
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
    name: `PostgreSQL, asynchronous and lagging, queue on ${backend}: the primary killed`,
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

/** Splits the network in two, and restores it after a while. */
const PARTITION: Failover[] = [true, false].map((withRecord) =>
  failover<PartitionServers>('partition', {
    name: `Sentinel: the network cut, the master and a dispatcher ${withRecord ? 'alone' : 'with the record'} on one side`,
    start: startPartitionServers,
    leftOut: () => needsRedis() ?? whyNoNetwork(),
    worldOf: ({ first, endpointHost, environment }) => ({ first, endpointHost, environment }),
    mayLose: 'direct',
    // Each side has a job for the deferred deliveries, and dispatchers run on both sides.
    losesLocks: () => true,
    async strike(world, _random, load) {
      const { cut, heal, healRecord, promoted, besideUrl, roleOfFirst } = world.servers;
      await world.kill(async () => cut(withRecord));
      await load.publishTo(besideUrl, BESIDE);
      await promoted();
      await wait(CUT_FOR_MS);
      heal();
      await eventually(async () => expect(await roleOfFirst()).toBe('slave'));
      // Restored last, because the dispatcher would otherwise process the events that the first master accepted.
      healRecord();
    },
  }),
);

export const FAILOVERS: Failover[] = [
  ...SENTINEL,
  ...CLUSTER,
  ...PARTITION,
  ...POSTGRES,
  ...POISON_FAILOVERS,
  ...SHARDED,
];
