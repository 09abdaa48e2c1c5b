import { type Processor, Queue, type QueueOptions, Worker, type WorkerOptions } from 'bullmq';
import type { Cluster } from 'ioredis';

/*
 * BullMQ makes its own connection to a server, but not to a cluster: it takes one that it is given, and leaves it open.
 * These close theirs.
 */

export class ClusterQueue<Data> extends Queue<Data> {
  readonly #cluster: Cluster;

  constructor(name: string, cluster: Cluster, options: Omit<QueueOptions, 'connection'>) {
    super(name, { ...options, connection: cluster });
    this.#cluster = cluster;
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      this.#cluster.disconnect();
    }
  }
}

export class ClusterWorker<Data> extends Worker<Data> {
  readonly #cluster: Cluster;

  constructor(
    name: string,
    process: Processor<Data>,
    cluster: Cluster,
    options: Omit<WorkerOptions, 'connection'>,
  ) {
    super(name, process, { ...options, connection: cluster });
    this.#cluster = cluster;
  }

  override async close(force?: boolean): Promise<void> {
    try {
      await super.close(force);
    } finally {
      this.#cluster.disconnect();
    }
  }
}
