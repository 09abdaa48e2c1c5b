import { mappedShards, type ShardMap } from '@runhook/contract';
import type { ShardDesk, ShardWorkers } from '@runhook/queue';
import { type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import type { DispatcherSettings } from './settings.ts';

interface ShardsProcess {
  settings: Pick<DispatcherSettings, 'queueShards'>;
  lifecycle: Lifecycle;
  logger: Logger;
}

/**
 * Gives the queue the configured number of shards, and returns the resulting map. Without a setting the map is
 * unchanged. Runs at start only: of dispatchers with different settings, the one that started last decides.
 */
export async function spreadAsSet(
  { settings, logger }: Pick<ShardsProcess, 'settings' | 'logger'>,
  shards: ShardDesk,
): Promise<ShardMap> {
  const before = await shards.look();
  if (settings.queueShards === undefined) return before;
  const map = await shards.spread(settings.queueShards);
  if (map.version !== before.version) logger.info(told(map), 'the queue has another number of shards');
  return map;
}

const told = (map: ShardMap) => ({ shards: mappedShards(map), draining: map.draining });

const LOOK_EVERY_MS = 1_000;

/** Opens and closes workers as the shard map changes. */
export function followShards(
  process: ShardsProcess,
  shards: ShardDesk,
  workers: readonly ShardWorkers[],
): void {
  const { lifecycle, logger } = process;
  let served: string | null = null;

  const look = async () => {
    const found = await shards.look();
    // The Redis was emptied, and the map with it.
    const map = found.version === 0 ? await spreadAsSet(process, shards) : found;
    for (const each of workers) each.follow(map);
    const now = [...new Set(workers.flatMap((each) => [...each.workers.keys()]))];
    if (now.join() === served) return;
    served = now.join();
    logger[served === '' ? 'warn' : 'info'](
      { ...told(map), served: now },
      'works on these shards of the queue',
    );
  };
  const looking = startPeriodic(LOOK_EVERY_MS, look, (err) =>
    logger.debug({ err }, 'the shards could not be looked at'),
  );
  lifecycle.onClose('shards watch', () => void looking.stop());
}
