import { JOB_RUN_EVENTS, mappedShards, SHARDS_MAX, type ShardMap, spreadSlots } from '@runhook/contract';
import type { Queue } from 'bullmq';
import type { ShardStore } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';
import { createProducer } from './producer.ts';
import { DRAINED_AFTER_MS } from './shard-maps.ts';

/** What a look at the shards changed. */
export interface ShardsTended {
  /** Emptied, and served no longer. */
  dropped: number[];
  /** Had jobs though nobody served them: of a publisher that was halted for long, or of an emptied Redis. */
  found: number[];
}

/** The map of shards, for those who serve the queue. All calls throw `QueueUnavailableError`. */
export interface ShardDesk {
  /** The map as it is now. Whatever adds jobs by the same back end knows it from now on. */
  look(): Promise<ShardMap>;
  /** Spreads the accounts over so many shards, if they are not; the map as it is then. */
  spread(count: number): Promise<ShardMap>;
  /** Lets go of shards that are emptied, and has those served that were found with jobs. */
  tend(): Promise<ShardsTended>;
  close(): Promise<void>;
}

/** Where a job may be that somebody has to work on. What is kept as failed is not. */
const STATES_OF_WORK = ['wait', 'paused', 'prioritized', 'delayed', 'active'];

/** @param drainedAfterMs how long a shard is served after it was left, at least; for tests */
export function openShardDesk(
  backend: QueueBackend,
  onError: (error: Error) => void,
  drainedAfterMs = DRAINED_AFTER_MS,
): ShardDesk {
  const { store } = backend.shardMaps;
  return store === null
    ? undivided(backend.shardMaps.known)
    : divisible(backend, store, onError, drainedAfterMs);
}

function divisible(
  backend: QueueBackend,
  store: ShardStore,
  onError: (error: Error) => void,
  drainedAfterMs: number,
): ShardDesk {
  const { shardMaps } = backend;
  const producer = createProducer<unknown>(backend, JOB_RUN_EVENTS, onError);
  /** When this process saw first that a shard is to be emptied. */
  const drainingSinceMs = new Map<number, number>();

  const look = () => producer.call((queue) => shardMaps.look(queue as Queue));

  /** Changes the map as it is, again when somebody else was first. Null leaves it. */
  async function change(
    next: (map: ShardMap, queue: Queue<unknown>) => Promise<ShardMap | null>,
  ): Promise<ShardMap> {
    for (;;) {
      const map = await look();
      const isDone = await producer.call(async (queue) => {
        const changed = await next(map, queue);
        return changed === null || (await store.write(queue, changed));
      });
      if (isDone) return await look();
    }
  }

  return {
    look,
    spread: (count) =>
      change(async (map, queue) => {
        if (mappedShards(map).length === count) return null;
        return spreadSlots(map, await store.byServer(queue, count));
      }),
    async tend() {
      let tended: ShardsTended = { dropped: [], found: [] };
      await change(async (map, queue) => {
        const mapped = new Set(map.slots);
        const unmapped = Array.from({ length: SHARDS_MAX }, (_, shard) => shard).filter(
          (shard) => !mapped.has(shard),
        );
        const busy = await store.withJobs(queue, unmapped, STATES_OF_WORK);
        const nowMs = performance.now();
        for (const shard of drainingSinceMs.keys())
          if (!map.draining.includes(shard)) drainingSinceMs.delete(shard);
        for (const shard of map.draining) if (!drainingSinceMs.has(shard)) drainingSinceMs.set(shard, nowMs);
        const dropped = map.draining.filter(
          (shard) => !busy.has(shard) && nowMs - (drainingSinceMs.get(shard) ?? nowMs) >= drainedAfterMs,
        );
        const found = [...busy].filter((shard) => !map.draining.includes(shard));
        tended = { dropped, found };
        if (dropped.length + found.length === 0) return null;
        const draining = [...map.draining.filter((shard) => !dropped.includes(shard)), ...found];
        return { ...map, version: map.version + 1, draining: draining.sort((one, other) => one - other) };
      });
      return tended;
    },
    close: () => producer.close(),
  };
}

const undivided = (map: ShardMap): ShardDesk => ({
  look: async () => map,
  spread: async () => map,
  tend: async () => ({ dropped: [], found: [] }),
  close: async () => undefined,
});
