import { spawnSync } from 'node:child_process';
import { findRedisServer } from '@runhook/embedded';
import type { Fault } from './faults.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { BackendName, Stores } from './servers.ts';
import { type Row, strike } from './strike.ts';
import { openWorldOn, type WorldOptions } from './world.ts';

/** Replaces a server by another one, in a separate world. */
export interface Failover {
  /** Name for `npm run chaos -- --topology`. */
  topology: 'sentinel' | 'cluster' | 'partition' | 'postgres' | 'shards';
  name: string;
  /** Returns the reason why the machine does not support it, or null. */
  leftOut(): string | null;
  run(random: SeededRandom): Promise<Row>;
}

export const needsRedis = () => (findRedisServer() === null ? 'no redis-server is on the path' : null);
export const needsRedisCli = () =>
  needsRedis() ?? (spawnSync('redis-cli', ['--version']).error ? 'no redis-cli is on the path' : null);

export function failover<Of extends Stores>(
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
