import { mappedShards, type ShardMap } from '@runhook/contract';
import type { ShardAdmin, ShardWorkers } from '@runhook/queue';
import { type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import type { DispatcherSettings } from './settings.ts';

interface ShardsProcess {
  settings: Pick<DispatcherSettings, 'queueShards'>;
  lifecycle: Lifecycle;
  logger: Logger;
}

/**
 * Gives the queue the configured number of shards, and returns the resulting map. Without a setting the map is
 * unchanged. Runs at start, and after the map was lost: of dispatchers with different settings, the last one decides.
 */
export async function applyShardCount(
  { settings, logger }: Pick<ShardsProcess, 'settings' | 'logger'>,
  shards: ShardAdmin,
): Promise<ShardMap> {
  const current = await shards.refresh();
  if (settings.queueShards === undefined) return current;
  const map = await shards.spread(settings.queueShards);
  if (map.version !== current.version)
    logger.info(shardLogFields(map), 'the number of shards of the queue has changed');
  return map;
}

const shardLogFields = (map: ShardMap) => ({ shards: mappedShards(map), draining: map.draining });

const POLL_EVERY_MS = 1_000;

/** Opens and closes workers as the shard map changes. */
export function followShards(
  process: ShardsProcess,
  shards: ShardAdmin,
  workers: readonly ShardWorkers[],
): void {
  const { lifecycle, logger } = process;
  let served: string | null = null;

  const poll = async () => {
    const found = await shards.refresh();
    // The Redis was emptied, and the map with it.
    const map = found.version === 0 ? await applyShardCount(process, shards) : found;
    for (const shardWorkers of workers) shardWorkers.follow(map);
    const servedNow = [...new Set(workers.flatMap((shardWorkers) => [...shardWorkers.workers.keys()]))];
    if (servedNow.join() === served) return;
    served = servedNow.join();
    logger[served === '' ? 'warn' : 'info'](
      { ...shardLogFields(map), served: servedNow },
      'serving these shards of the queue',
    );
  };
  const polling = startPeriodic(POLL_EVERY_MS, poll, (err) =>
    logger.debug({ err }, 'the map of the queue shards could not be read'),
  );
  lifecycle.onClose('shards watch', () => void polling.stop());
}
