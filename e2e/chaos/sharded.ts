import { setTimeout as wait } from 'node:timers/promises';
import { mappedShards, type ShardMap, shardOf, shardPrefix } from '@runhook/contract';
import { createEventPublisher } from '@runhook/publisher';
import { createQueueBackend, openShardAdmin } from '@runhook/queue';
import { eventually, exampleEvent, seedAccount, seedSubscription } from '@runhook/testing';
import { HEALTHY } from './endpoint.ts';
import { createFailover, type Failover, needsRedisCli } from './failover.ts';
import { type ClusterServers, startClusterServers } from './redis-cluster.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<ClusterServers>;

const SHARDS = 8;
/** Number of accounts: enough that each shard has some, and each master has nearly a third of the load. */
const ACCOUNTS = 300;
const PUBLISH_INTERVAL_MS = 100;
/** Number of concurrent events, for all accounts in turn. */
const EVENTS_PER_PUBLISH = 30;
const UNDER_LOAD_MS = 8_000;
/** Permitted deviation of a master's share of the commands from the mean. */
const DEVIATION_MAX = 0.15;

const sharded = (queueShards: number) => ({ environment: { QUEUE_SHARDS: String(queueShards) } });
const commonOptions = {
  start: startClusterServers,
  skipReason: needsRedisCli,
  worldOptions: () => sharded(SHARDS),
};

export const SHARDED: Failover[] = [
  createFailover<ClusterServers>('shards', {
    ...commonOptions,
    name: 'Cluster, 8 shards: 300 accounts',
    async strike(world, _random, load) {
      await waitUntilSharded(world, SHARDS);
      // The load is stopped, because its single account is on one shard.
      await load.stop();
      const accountLoad = await startAccountLoad(world);
      await wait(UNDER_LOAD_MS / 4);
      const before = await world.servers.commandsOfMasters();
      await wait(UNDER_LOAD_MS);
      const after = await world.servers.commandsOfMasters();
      const commands = after.map((count, index) => count - (before[index] ?? 0));
      await accountLoad.stop();
      const mean = commands.reduce((sum, count) => sum + count, 0) / commands.length;
      const maxDeviation = Math.max(...commands.map((count) => Math.abs(count / mean - 1)));
      const summary = `commands of the masters: ${commands.join(', ')}; at most ${(maxDeviation * 100).toFixed(1)} % from the mean`;
      process.stderr.write(`         ${summary}\n`);
      return async () => [
        ...(maxDeviation > DEVIATION_MAX ? [summary] : []),
        ...(await accountLoad.problems()),
      ];
    },
  }),
  killMasterFailover('the master of the account killed', shardOf),
  killMasterFailover('the master of the map killed', () => 0),
  createFailover<ClusterServers>('shards', {
    ...commonOptions,
    name: 'Cluster: from 1 shard to 8 and back',
    worldOptions: () => ({}),
    async strike(world) {
      const accountLoad = await startAccountLoad(world);
      await wait(UNDER_LOAD_MS / 4);
      world.killedAtMs = Date.now();
      for (const count of [SHARDS, 1]) {
        // Restarts the dispatchers one after another, as a rolling update does.
        for (const [index, dispatcher] of world.dispatchers.entries()) {
          await world.startDispatcher(index, sharded(count));
          await dispatcher.stop();
        }
        await waitUntilSharded(world, count);
        await wait(UNDER_LOAD_MS);
      }
      await accountLoad.stop();
      return accountLoad.problems;
    },
  }),
];

/** @param selectShard returns the shard whose master is killed, from the map and the account under load */
function killMasterFailover(
  name: string,
  selectShard: (map: ShardMap, accountId: number) => number,
): Failover {
  return createFailover<ClusterServers>('shards', {
    ...commonOptions,
    name: `Cluster, 8 shards: ${name}`,
    async strike(world, _random, { accountId }) {
      const map = await waitUntilSharded(world, SHARDS);
      const accountLoad = await startAccountLoad(world);
      await wait(UNDER_LOAD_MS / 4);
      await world.kill(() => world.servers.killMasterOf(shardPrefix(selectShard(map, accountId))));
      await world.servers.waitUntilPromoted();
      await world.servers.restartKilled();
      await accountLoad.stop();
      return accountLoad.problems;
    },
  });
}

/** Resolves with the map once the accounts are spread over this many shards. */
async function waitUntilSharded({ servers }: World, count: number): Promise<ShardMap> {
  const shardAdmin = openShardAdmin(createQueueBackend(servers.queueUrl), () => undefined);
  try {
    return await eventually(async () => {
      const map = await shardAdmin.refresh();
      if (mappedShards(map).length !== count) throw new Error(`the map has the shards ${mappedShards(map)}`);
      return map;
    });
  } finally {
    await shardAdmin.close();
  }
}

interface AccountLoad {
  stop(): Promise<void>;
  /** Returns the differences from the published events, once nothing is pending. */
  problems(): Promise<string[]>;
}

/** Creates many accounts with a healthy webhook each, and publishes their events directly onto the queue. */
async function startAccountLoad({ database, endpoint, servers, queues }: World): Promise<AccountLoad> {
  const accounts: Awaited<ReturnType<typeof seedAccount>>[] = [];
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const account = await seedAccount(database);
    await seedSubscription(database, { accountId: account.id, clientUrl: `${endpoint.url}${HEALTHY}` });
    accounts.push(account);
  }
  const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
  const accepted = new Set<string>();
  let rejectedCount = 0;
  let isStopped = false;
  async function publish(): Promise<void> {
    for (let next = 0; !isStopped; next += EVENTS_PER_PUBLISH) {
      const published = Array.from({ length: EVENTS_PER_PUBLISH }, (_, offset) => {
        const { jobs } = accounts[(next + offset) % ACCOUNTS] as (typeof accounts)[number];
        const event = exampleEvent('job.run.started', jobs[0] as (typeof jobs)[number], next + offset + 1);
        return publisher.publish(event).then((id) => accepted.add(id));
      });
      const results = await Promise.allSettled(published);
      rejectedCount += results.filter(({ status }) => status === 'rejected').length;
      await wait(PUBLISH_INTERVAL_MS);
    }
  }
  const publishing = publish();
  return {
    async stop() {
      isStopped = true;
      await publishing;
      await publisher.close();
    },
    async problems() {
      const { rows } = await database.pool.query<{ id: string; status: string }>(
        'SELECT event_id AS id, status FROM deliveries WHERE account_id = ANY ($1::bigint[])',
        [accounts.map(({ id }) => id)],
      );
      const delivered = new Set(rows.filter(({ status }) => status === 'delivered').map(({ id }) => id));
      const missing = [...accepted].filter((id) => !delivered.has(id));
      const counts = await Promise.all(queues.map((queue) => queue.counts()));
      process.stderr.write(
        `         ${ACCOUNTS} more accounts: ${accepted.size} events accepted, ${rejectedCount} calls rejected, ${missing.length} missing\n`,
      );
      return missing.length === 0
        ? []
        : [
            `${missing.length} events of other accounts are missing; the queues have ${JSON.stringify(counts)}`,
          ];
    },
  };
}
