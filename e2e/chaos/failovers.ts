import { setTimeout as wait } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { shardPrefix } from '@runhook/contract';
import { eventually } from '@runhook/testing';
import { createFailover, type Failover, needsRedis, needsRedisCli } from './failover.ts';
import { networkSkipReason, type PartitionServers, startPartitionServers } from './partition.ts';
import { POISON_FAILOVERS } from './poison.ts';
import { type ClusterServers, startClusterServers } from './redis-cluster.ts';
import { type SentinelServers, startSentinelServers } from './redis-sentinel.ts';
import { SHARDED } from './sharded.ts';
import { type StandbyServers, startStandbyServers } from './standby.ts';

/** Time for which the network stays split after the replica has been promoted. */
const PARTITION_MS = 5_000;
/** Number of events that are published to an isolated master. */
const EVENTS_TO_OLD_MASTER = 400;
/** Time for which the replica lags: acknowledged writes then exist on the master only. */
const REPLICA_LAG_MS = 2_500;

const SENTINEL: Failover[] = [
  createFailover<SentinelServers>('sentinel', {
    name: 'Sentinel: the master killed',
    start: startSentinelServers,
    skipReason: needsRedis,
    async strike(world) {
      await world.kill(world.servers.killMaster);
      return await expectReplaced(world.servers);
    },
  }),
  createFailover<SentinelServers>('sentinel', {
    name: 'Sentinel: the master killed with unreplicated writes',
    start: startSentinelServers,
    skipReason: needsRedis,
    mayLose: 'direct',
    async strike(world) {
      await makeReplicaLag(world.servers);
      await world.kill(world.servers.killMaster);
      return await expectReplaced(world.servers);
    },
  }),
  createFailover<SentinelServers>('sentinel', {
    name: 'Sentinel: the master killed with unreplicated writes, while no dispatcher runs',
    start: startSentinelServers,
    skipReason: needsRedis,
    mayLose: 'direct',
    async strike(world) {
      await Promise.all(world.dispatchers.map((dispatcher) => dispatcher.stop()));
      await makeReplicaLag(world.servers);
      await world.kill(world.servers.killMaster);
      const aftermath = await expectReplaced(world.servers);
      await Promise.all(world.dispatchers.map((_, index) => world.startDispatcher(index)));
      return aftermath;
    },
  }),
];

async function makeReplicaLag({ stopReplica, lagBytes }: SentinelServers): Promise<void> {
  await stopReplica();
  await wait(REPLICA_LAG_MS);
  if ((await lagBytes()) === 0) throw new Error('the replica does not lag');
}

/** Restarts the first master after the replica was promoted; at the end it must be a replica. */
async function expectReplaced({ waitUntilPromoted, restartMaster, readRoleOfFirst }: SentinelServers) {
  await waitUntilPromoted();
  await restartMaster();
  return async () => {
    await eventually(async () => expect(await readRoleOfFirst()).toBe('slave'));
    return [];
  };
}

const CLUSTER: Failover[] = [
  createFailover<ClusterServers>('cluster', {
    name: 'Cluster: the master of the keys killed',
    start: startClusterServers,
    skipReason: needsRedisCli,
    async strike(world) {
      await world.kill(() => world.servers.killMasterOf(shardPrefix(0)));
      await world.servers.waitUntilPromoted();
      await world.servers.restartKilled();
    },
  }),
  createFailover<ClusterServers>('cluster', {
    name: 'Cluster: the slot of the keys moved',
    start: startClusterServers,
    skipReason: needsRedisCli,
    async strike(world) {
      world.killedAtMs = Date.now();
      await world.servers.reshard();
    },
  }),
];

/** Kills the primary of the record and promotes its replica. The queue is on another server, or fails with it. */
const POSTGRES: Failover[] = (['PostgreSQL', 'Redis'] as const).flatMap((backend) => [
  createFailover<StandbyServers>('postgres', {
    name: `PostgreSQL, synchronous, queue on ${backend}: the primary killed`,
    backend,
    start: () => startStandbyServers(backend, { isSynchronous: true }),
    skipReason: () => (backend === 'Redis' ? needsRedis() : null),
    async strike(world) {
      await world.kill(world.servers.killPrimary);
      await world.servers.promote(world);
    },
  }),
  createFailover<StandbyServers>('postgres', {
    name: `PostgreSQL, asynchronous and lagging, queue on ${backend}: the primary killed`,
    backend,
    start: () => startStandbyServers(backend, { isSynchronous: false }),
    skipReason: () => (backend === 'Redis' ? needsRedis() : null),
    mayLose: 'either',
    async strike(world) {
      await world.servers.stopReplication();
      await wait(REPLICA_LAG_MS);
      await world.kill(world.servers.killPrimary);
      await world.servers.promote(world);
    },
  }),
]);

/** Splits the network in two, and restores it after a while. */
const PARTITION: Failover[] = [true, false].map((withRecord) =>
  createFailover<PartitionServers>('partition', {
    name: `Sentinel: the network cut, the master and a dispatcher ${withRecord ? 'alone' : 'with the record'} on one side`,
    start: startPartitionServers,
    skipReason: () => needsRedis() ?? networkSkipReason(),
    worldOptions: ({ firstDispatcher, endpointHost, environment }) => ({
      firstDispatcher,
      endpointHost,
      environment,
    }),
    mayLose: 'direct',
    // Each side has a job for the deferred deliveries, and dispatchers run on both sides.
    losesLocks: () => true,
    async strike(world, _random, load) {
      const { cut, heal, healRecord, waitUntilPromoted, oldMasterUrl, readRoleOfFirst } = world.servers;
      await world.kill(async () => cut(withRecord));
      await load.publishTo(oldMasterUrl, EVENTS_TO_OLD_MASTER);
      await waitUntilPromoted();
      await wait(PARTITION_MS);
      heal();
      await eventually(async () => expect(await readRoleOfFirst()).toBe('slave'));
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
