import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { shardPrefix } from '@runhook/contract';
import { eventually } from '@runhook/testing';
import { type RedisProcess, send } from '../../packages/queue/test/backends/redis-servers.ts';
import { CleanupStack } from './cleanup-stack.ts';
import { startInOwnFolder, startRecord } from './redis-sentinel.ts';
import { makeFolder, type Stores } from './servers.ts';

const run = promisify(execFile);

const NODES = 6;
const NODE_TIMEOUT_MS = 2_000;
const SLOTS = 16_384;
const POLL_OPTIONS = { timeoutMs: 120_000, intervalMs: 50 };

/** A Redis Cluster of three masters with a replica each, and a PostgreSQL. */
export interface ClusterServers extends Stores {
  /** Kills the master that has the keys of a shard with SIGKILL. */
  killMasterOf(prefix: string): Promise<void>;
  /** Resolves when another node has the slots of the killed master. */
  waitUntilPromoted(): Promise<void>;
  /** Restarts the killed node on the same port. Resolves when it is a replica. */
  restartKilled(): Promise<void>;
  /** Moves the slot of the first shard's keys, and all lower slots of its node, to another master. Resolves with the number of slots. */
  reshard(): Promise<number>;
  /** Returns the number of commands that each master has executed since its start. */
  commandsOfMasters(): Promise<number[]>;
}

interface Node {
  id: string;
  port: number;
  isMaster: boolean;
  isGone: boolean;
  /** Both ends are inclusive. */
  slots: [from: number, to: number][];
}

export async function startClusterServers(): Promise<ClusterServers> {
  const cleanup = new CleanupStack();
  try {
    const folder = await makeFolder(cleanup);
    const databaseUrl = await startRecord(folder, cleanup);
    const processes = new Map<number, RedisProcess>();
    const start = async (index: number, wanted?: number) => {
      const server = await startInOwnFolder({
        folder,
        name: `node-${index}`,
        ...(wanted && { port: wanted }),
        conf: (port) => [
          `port ${port}`,
          `cluster-port ${port + 1}`,
          'save ""',
          'appendonly yes',
          'cluster-enabled yes',
          'cluster-config-file nodes.conf',
          `cluster-node-timeout ${NODE_TIMEOUT_MS}`,
        ],
      });
      processes.set(server.port, server);
      return server.port;
    };
    cleanup.add(() => Promise.all([...processes.values()].map((server) => server.kill())));
    const ports: number[] = [];
    for (let index = 0; index < NODES; index += 1) ports.push(await start(index));
    const addresses = ports.map((port) => `127.0.0.1:${port}`);
    await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes']);

    const isAlive = () => ports.filter((port) => processes.has(port));
    /** Returns the nodes according to the running node with this index. */
    const nodes = async (index = 0) =>
      parseNodes(String(await send(isAlive()[index] as number, ['CLUSTER', 'NODES'])));
    await eventually(async () => {
      for (const port of ports) {
        const info = String(await send(port, ['CLUSTER', 'INFO']));
        if (!/cluster_state:ok/.test(info)) throw new Error(info);
      }
      for (const { port } of (await nodes()).filter(({ isMaster }) => isMaster))
        if (!/state=online/.test(String(await send(port, ['INFO', 'replication']))))
          throw new Error(`${port} has no replica`);
    }, POLL_OPTIONS);
    const readSlot = async (prefix: string) =>
      Number(await send(isAlive()[0] as number, ['CLUSTER', 'KEYSLOT', prefix]));
    const findOwner = (all: readonly Node[], slot: number) =>
      all.find(
        ({ isMaster, isGone, slots }) => isMaster && !isGone && slots.some((range) => ownsSlot(range, slot)),
      );
    let killed: number | null = null;
    let slotOfKilled = 0;

    return {
      folder,
      databaseUrl,
      queueUrl: `redis+cluster://${addresses.join(',')}`,
      async killMasterOf(prefix) {
        slotOfKilled = await readSlot(prefix);
        const owner = findOwner(await nodes(), slotOfKilled);
        if (owner === undefined) throw new Error(`no node has the keys of ${prefix}`);
        killed = owner.port;
        await processes.get(killed)?.kill();
        processes.delete(killed);
      },
      waitUntilPromoted: () =>
        eventually(async () => {
          for (const index of isAlive().keys()) {
            const owner = findOwner(await nodes(index), slotOfKilled);
            if (owner === undefined || owner.port === killed) throw new Error('no other node has the slots');
          }
        }, POLL_OPTIONS),
      async restartKilled() {
        if (killed === null) throw new Error('no master was killed');
        const port = await start(ports.indexOf(killed), killed);
        await eventually(async () => {
          if (!/role:slave/.test(String(await send(port, ['INFO', 'replication']))))
            throw new Error(`${port} is not a replica`);
        }, POLL_OPTIONS);
      },
      async reshard() {
        const all = await nodes();
        const slot = await readSlot(shardPrefix(0));
        const from = findOwner(all, slot);
        const to = all.find(({ id, isMaster, isGone }) => isMaster && !isGone && id !== from?.id);
        if (from === undefined || to === undefined) throw new Error('there are fewer than two masters');
        // redis-cli moves the slots of a node in ascending order.
        const count = countSlotsUpTo(from, slot);
        await run(
          'redis-cli',
          [
            ...[
              '--cluster',
              'reshard',
              `127.0.0.1:${from.port}`,
              '--cluster-from',
              from.id,
              '--cluster-to',
              to.id,
            ],
            ...['--cluster-slots', String(count), '--cluster-yes'],
          ],
          { maxBuffer: SLOTS * 1_024 },
        );
        const owner = findOwner(await nodes(), slot);
        if (owner?.id !== to.id) throw new Error('the keys of the queue have not moved');
        return count;
      },
      async commandsOfMasters() {
        const masters = (await nodes()).filter(({ isMaster, isGone }) => isMaster && !isGone);
        return await Promise.all(
          masters.map(async ({ port }) => {
            const stats = String(await send(port, ['INFO', 'stats']));
            return Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]);
          }),
        );
      },
      close: () => cleanup.run(),
    };
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

const ownsSlot = ([from, to]: [number, number], slot: number) => from <= slot && slot <= to;

function countSlotsUpTo({ slots }: Node, slot: number): number {
  return slots.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, slot) - from + 1), 0);
}

/** Parses lines such as `<id> 127.0.0.1:7000@7001 myself,master - 0 0 1 connected 0-5460`. */
function parseNodes(text: string): Node[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', address = '', flags = '', , , , , , ...slots] = line.split(' ');
      return {
        id,
        port: Number(/:(\d+)@/.exec(address)?.[1]),
        isMaster: flags.includes('master'),
        isGone: flags.includes('fail'),
        slots: slots
          .filter((range) => !range.startsWith('['))
          .map((range) => {
            const [from, to = from] = range.split('-').map(Number);
            return [from, to] as [number, number];
          }),
      };
    });
}
