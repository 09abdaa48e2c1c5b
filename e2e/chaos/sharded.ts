import { setTimeout as wait } from 'node:timers/promises';
import { mappedShards, type ShardMap, shardOf, shardPrefix } from '@runhook/contract';
import { createEventPublisher } from '@runhook/publisher';
import { createQueueBackend, openShardDesk } from '@runhook/queue';
import { eventually, exampleEvent, seedAccount, seedSubscription } from '@runhook/testing';
import { HEALTHY } from './endpoint.ts';
import { type Failover, failover, needsRedisCli } from './failover.ts';
import { type ClusterServers, startClusterServers } from './redis-cluster.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<ClusterServers>;

const SHARDS = 8;
/** Is large enough that each shard has accounts, and each master has nearly a third of the load. */
const ACCOUNTS = 300;
const PUBLISHED_EVERY_MS = 100;
/** Number of concurrent events, for all accounts in turn. */
const PUBLISHED_AT_ONCE = 30;
const UNDER_LOAD_MS = 8_000;
/** Permitted deviation of a master's share of the commands from the mean. */
const SHARE_OFF_MAX = 0.15;

const sharded = (queueShards: number) => ({ environment: { QUEUE_SHARDS: String(queueShards) } });
const common = {
  start: startClusterServers,
  leftOut: needsRedisCli,
  worldOf: () => sharded(SHARDS),
};

export const SHARDED: Failover[] = [
  failover<ClusterServers>('shards', {
    ...common,
    name: 'Cluster, 8 shards: 300 accounts',
    async strike(world, _random, load) {
      await spreadOver(world, SHARDS);
      // The load is stopped, because its single account is on one shard.
      await load.stop();
      const crowd = await startCrowd(world);
      await wait(UNDER_LOAD_MS / 4);
      const before = await world.servers.commandsOfMasters();
      await wait(UNDER_LOAD_MS);
      const after = await world.servers.commandsOfMasters();
      const commands = after.map((count, index) => count - (before[index] ?? 0));
      await crowd.stop();
      const mean = commands.reduce((sum, count) => sum + count, 0) / commands.length;
      const off = Math.max(...commands.map((count) => Math.abs(count / mean - 1)));
      const told = `commands of the masters: ${commands.join(', ')}; at most ${(off * 100).toFixed(1)} % from the mean`;
      process.stderr.write(`         ${told}\n`);
      return async () => [...(off > SHARE_OFF_MAX ? [told] : []), ...(await crowd.problems())];
    },
  }),
  masterKilled('the master of the account killed', shardOf),
  masterKilled('the master of the map killed', () => 0),
  failover<ClusterServers>('shards', {
    ...common,
    name: 'Cluster: from 1 shard to 8 and back',
    worldOf: () => ({}),
    async strike(world) {
      const crowd = await startCrowd(world);
      await wait(UNDER_LOAD_MS / 4);
      world.killedAtMs = Date.now();
      for (const count of [SHARDS, 1]) {
        // Restarts the dispatchers one after another, as a rolling update does.
        for (const [index, dispatcher] of world.dispatchers.entries()) {
          await world.startDispatcher(index, sharded(count));
          await dispatcher.stop();
        }
        await spreadOver(world, count);
        await wait(UNDER_LOAD_MS);
      }
      await crowd.stop();
      return crowd.problems;
    },
  }),
];

/** @param shardOfIt returns the shard whose master is killed, from the map and the account under load */
function masterKilled(name: string, shardOfIt: (map: ShardMap, accountId: number) => number): Failover {
  return failover<ClusterServers>('shards', {
    ...common,
    name: `Cluster, 8 shards: ${name}`,
    async strike(world, _random, { accountId }) {
      const map = await spreadOver(world, SHARDS);
      const crowd = await startCrowd(world);
      await wait(UNDER_LOAD_MS / 4);
      await world.kill(() => world.servers.killMasterOf(shardPrefix(shardOfIt(map, accountId))));
      await world.servers.promoted();
      await world.servers.restartKilled();
      await crowd.stop();
      return crowd.problems;
    },
  });
}

/** Resolves with the map once the accounts are spread over this many shards. */
async function spreadOver({ servers }: World, count: number): Promise<ShardMap> {
  const desk = openShardDesk(createQueueBackend(servers.queueUrl), () => undefined);
  try {
    return await eventually(async () => {
      const map = await desk.look();
      if (mappedShards(map).length !== count) throw new Error(`the map has the shards ${mappedShards(map)}`);
      return map;
    });
  } finally {
    await desk.close();
  }
}

interface Crowd {
  stop(): Promise<void>;
  /** Returns the differences from the published events, once nothing is pending. */
  problems(): Promise<string[]>;
}

/** Creates many accounts with a healthy webhook each, and publishes their events directly onto the queue. */
async function startCrowd({ database, endpoint, servers, queues }: World): Promise<Crowd> {
  const accounts: Awaited<ReturnType<typeof seedAccount>>[] = [];
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const account = await seedAccount(database);
    await seedSubscription(database, { accountId: account.id, clientUrl: `${endpoint.url}${HEALTHY}` });
    accounts.push(account);
  }
  const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
  const accepted = new Set<string>();
  let refused = 0;
  let isStopped = false;
  async function publish(): Promise<void> {
    for (let next = 0; !isStopped; next += PUBLISHED_AT_ONCE) {
      const published = Array.from({ length: PUBLISHED_AT_ONCE }, (_, offset) => {
        const { jobs } = accounts[(next + offset) % ACCOUNTS] as (typeof accounts)[number];
        const event = exampleEvent('job.run.started', jobs[0] as (typeof jobs)[number], next + offset + 1);
        return publisher.publish(event).then((id) => accepted.add(id));
      });
      const settled = await Promise.allSettled(published);
      refused += settled.filter(({ status }) => status === 'rejected').length;
      await wait(PUBLISHED_EVERY_MS);
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
        `         ${ACCOUNTS} more accounts: ${accepted.size} events accepted, ${refused} calls rejected, ${missing.length} missing\n`,
      );
      return missing.length === 0
        ? []
        : [
            `${missing.length} events of other accounts are missing; the queues have ${JSON.stringify(counts)}`,
          ];
    },
  };
}
