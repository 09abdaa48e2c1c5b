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

/** After the replica has taken over. */
const CUT_FOR_MS = 5_000;
/** Events that are published to a master that is cut off. */
const BESIDE = 400;
/** For so long what is acknowledged is on the master alone. */
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
      const { cut, heal, healRecord, promoted, besideUrl, roleOfFirst } = world.servers;
      await world.kill(async () => cut(withRecord));
      await load.publishTo(besideUrl, BESIDE);
      await promoted();
      await wait(CUT_FOR_MS);
      heal();
      await eventually(async () => expect(await roleOfFirst()).toBe('slave'));
      // Before that its dispatcher would work off what the first master was given.
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
