import { spawnSync } from 'node:child_process';
import { findRedisServer } from '@runhook/embedded';
import type { Fault } from './faults.ts';
import { type Row, runFault } from './run-fault.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { BackendName, Stores } from './servers.ts';
import { openWorldWith, type WorldOptions } from './world.ts';

/** Replaces a server by another one, in a separate world. */
export interface Failover {
  /** Name for `npm run chaos -- --topology`. */
  topology: 'sentinel' | 'cluster' | 'partition' | 'postgres' | 'shards';
  name: string;
  /** Returns the reason why the machine does not support the failover, or null. */
  skipReason(): string | null;
  run(random: SeededRandom): Promise<Row>;
}

export const needsRedis = () => (findRedisServer() === null ? 'no redis-server is on the path' : null);
export const needsRedisCli = () =>
  needsRedis() ?? (spawnSync('redis-cli', ['--version']).error ? 'no redis-cli is on the path' : null);

export function createFailover<Of extends Stores>(
  topology: Failover['topology'],
  {
    start,
    skipReason,
    backend = 'Redis',
    worldOptions = () => ({}),
    ...fault
  }: Fault<Of> & {
    start: () => Promise<Of>;
    skipReason: () => string | null;
    backend?: BackendName;
    worldOptions?: (servers: Of) => WorldOptions;
  },
): Failover {
  return {
    topology,
    name: fault.name,
    skipReason,
    async run(random) {
      const servers = await start();
      const world = await openWorldWith(servers, backend, random, worldOptions(servers));
      try {
        return await runFault(world, fault, random);
      } finally {
        await world.close();
      }
    },
  };
}
