import type { Queue } from 'bullmq';

/** A worker in a list of clients: its name in BullMQ, empty if it has none, and the logical database of its connection. */
export interface ListedWorker {
  name: string;
  /** Null on PostgreSQL, which lists only clients of the queue's database. */
  database: number | null;
}

/**
 * Returns the workers of a queue's name in any shard, from the lists of clients of its servers. BullMQ's `getWorkers`
 * reads one server of a cluster and the shard of the queue only.
 */
export async function listWorkers<Data>(queue: Queue<Data>, queueKey: string): Promise<ListedWorker[]> {
  const lists = await queue.getBackend().getClientList();
  const client = new RegExp(`(?:^| )name=(?:\\{runhook(?::\\d+)?\\}:)?${queueKey}(?::w:(\\S+))?(?: |$)`);
  return lists
    .flatMap((list) => list.split('\n'))
    .flatMap((line) => {
      const match = client.exec(line.trimEnd());
      if (match === null) return [];
      const database = / db=(\d+)/.exec(line)?.[1];
      return [{ name: match[1] ?? '', database: database === undefined ? null : Number(database) }];
    });
}
