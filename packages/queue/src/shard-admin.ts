import { JOB_RUN_EVENTS, mappedShards, SHARDS_MAX, type ShardMap, spreadSlots } from '@runhook/contract';
import type { Queue } from 'bullmq';
import type { ShardStore } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';
import { createProducer } from './producer.ts';
import { DRAINED_AFTER_MS } from './shard-maps.ts';

/** Changes of one maintenance pass over the shards. */
export interface ShardsReconciled {
  /** Shards that were drained and are no longer served. */
  dropped: number[];
  /** Shards that had jobs although no worker served them, from a long halted publisher or an emptied Redis. */
  found: number[];
}

/** Administers the shard map, for processes that serve the queue. All calls throw `QueueUnavailableError`. */
export interface ShardAdmin {
  /** Reads the current map. All producers of the same back end use it from then on. */
  refresh(): Promise<ShardMap>;
  /** Distributes the accounts over this number of shards, unless they are already. Returns the resulting map. */
  spread(count: number): Promise<ShardMap>;
  /** Removes drained shards, and adds unserved shards with jobs to the draining ones, which workers serve. */
  reconcile(): Promise<ShardsReconciled>;
  close(): Promise<void>;
}

/** States of jobs that need a worker. Failed jobs do not. */
const UNFINISHED_STATES = ['wait', 'paused', 'prioritized', 'delayed', 'active'];

/** @param drainedAfterMs minimum time for which a draining shard is served; set by tests */
export function openShardAdmin(
  backend: QueueBackend,
  onError: (error: Error) => void,
  drainedAfterMs = DRAINED_AFTER_MS,
): ShardAdmin {
  const { store } = backend.shardMaps;
  return store === null
    ? undivided(backend.shardMaps.cached)
    : divisible(backend, store, onError, drainedAfterMs);
}

function divisible(
  backend: QueueBackend,
  store: ShardStore,
  onError: (error: Error) => void,
  drainedAfterMs: number,
): ShardAdmin {
  const { shardMaps } = backend;
  const producer = createProducer<unknown>(backend, JOB_RUN_EVENTS, onError);
  /** Time at which this process first saw each draining shard. */
  const drainingSinceMs = new Map<number, number>();

  const refresh = () => producer.call((queue) => shardMaps.refresh(queue as Queue));

  /** Changes the current map, and retries if another process changed it first. Null from `next` leaves it unchanged. */
  async function change(
    next: (map: ShardMap, queue: Queue<unknown>) => Promise<ShardMap | null>,
  ): Promise<ShardMap> {
    for (;;) {
      const map = await refresh();
      const isDone = await producer.call(async (queue) => {
        const changed = await next(map, queue);
        return changed === null || (await store.write(queue, changed));
      });
      if (isDone) return await refresh();
    }
  }

  return {
    refresh,
    spread: (count) =>
      change(async (map, queue) => {
        if (mappedShards(map).length === count) return null;
        return spreadSlots(map, await store.byServer(queue, count));
      }),
    async reconcile() {
      let reconciled: ShardsReconciled = { dropped: [], found: [] };
      await change(async (map, queue) => {
        const mapped = new Set(map.slots);
        const unmapped = Array.from({ length: SHARDS_MAX }, (_, shard) => shard).filter(
          (shard) => !mapped.has(shard),
        );
        const busy = await store.withJobs(queue, unmapped, UNFINISHED_STATES);
        const nowMs = performance.now();
        for (const shard of drainingSinceMs.keys())
          if (!map.draining.includes(shard)) drainingSinceMs.delete(shard);
        for (const shard of map.draining) if (!drainingSinceMs.has(shard)) drainingSinceMs.set(shard, nowMs);
        const dropped = map.draining.filter(
          (shard) => !busy.has(shard) && nowMs - (drainingSinceMs.get(shard) ?? nowMs) >= drainedAfterMs,
        );
        const found = [...busy].filter((shard) => !map.draining.includes(shard));
        reconciled = { dropped, found };
        if (dropped.length + found.length === 0) return null;
        const draining = [...map.draining.filter((shard) => !dropped.includes(shard)), ...found];
        return { ...map, version: map.version + 1, draining: draining.sort((one, other) => one - other) };
      });
      return reconciled;
    },
    close: () => producer.close(),
  };
}

const undivided = (map: ShardMap): ShardAdmin => ({
  refresh: async () => map,
  spread: async () => map,
  reconcile: async () => ({ dropped: [], found: [] }),
  close: async () => undefined,
});
