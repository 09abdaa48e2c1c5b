import type { ShardMap } from '@runhook/contract';
import type { Processor, Queue, Telemetry, Worker, WorkerOptions } from 'bullmq';

/** A job to add, as `Queue.addBulk` takes it. */
export type AddedJob<Data> = Parameters<Queue<Data>['addBulk']>[0][number];

export type TunedWorkerOptions = Omit<WorkerOptions, 'connection' | 'prefix'>;

/** Time without a reply after which a connection counts as dead: the network may drop one without closing it. */
export const SILENT_MS = 15_000;

/**
 * State of a job: `queued` in a list or set that workers take from, or locked by a worker; `ended` and retained as
 * completed or failed; `orphaned` when its key exists but no list or set has it, so that no worker takes it and its id
 * cannot be added; `unsearched` when it is queued or orphaned, and the wait list is too long to search (2,000,000
 * entries).
 */
export type JobState = 'queued' | 'ended' | 'orphaned' | 'unsearched';

/** BullMQ on the server that `QUEUE_URL` names. */
export interface Connector {
  /** @param shard 0 when omitted */
  createQueue<Data>(name: string, telemetry?: Telemetry, shard?: number): Queue<Data>;
  /** @param shard 0 when omitted */
  createWorker<Data>(
    name: string,
    process: Processor<Data>,
    options: TunedWorkerOptions,
    shard?: number,
  ): Worker<Data>;
  /** Store of the shard map; null where a queue cannot be divided. */
  shards: ShardStore | null;
  /**
   * Returns the queues that may have jobs in these states. Makes a single call if all queues are on one server and have
   * no such job.
   */
  queuesWithJobs<Data>(queues: readonly Queue<Data>[], states: readonly string[]): Promise<Set<Queue<Data>>>;
  /** Number of jobs of a call up to which they are added individually, because the bulk call costs more. */
  singleAddMax: number;
  /** Whether an error means that the server has no memory or disk space left, and rejects writes until it has. */
  isFull(error: unknown): boolean;
  /** Whether an error of the server says that the data of a job is invalid; see {@link JobsRejectedError}. */
  isJobFault(error: unknown): boolean;
  /** Whether the shards of a queue may be on several servers, as on a Redis Cluster. */
  isSpread: boolean;
  /** Returns the share of its memory that the queue's server uses, from 0 to 1; 0 where it does not report it. */
  usedShare<Data>(queue: Queue<Data>): Promise<number>;
  /** Returns the server's name for its eviction policy; null when it retains all data. */
  evictionPolicy<Data>(queue: Queue<Data>): Promise<string | null>;
  /**
   * Returns waiting jobs, the next one first, by commands that a full server accepts. Empty where workers can process
   * the jobs of a full server.
   */
  peek<Data>(queue: Queue<Data>, count: number): Promise<Omit<PeekedJob<Data>, 'shard'>[]>;
  /** Removes waiting or delayed jobs by commands that a full server accepts. */
  discard<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<void>;
  /** Returns the ids of up to `count` delayed jobs, those that are due latest first. */
  lastDelayed<Data>(queue: Queue<Data>, count: number): Promise<string[]>;
  /** Whether any job is retained as failed. Called with each published event; BullMQ's count would read every job. */
  hasFailed<Data>(queue: Queue<Data>): Promise<boolean>;
  /**
   * Returns the state of each job; a job that does not exist is absent from the result. No list is searched for each
   * job: on Redis the wait list is read once for all of them, and not at all if it has more than 2,000,000 entries.
   */
  jobStates<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Map<string, JobState>>;
  /** Removes the keys of orphaned jobs, so that jobs with their ids can be added. */
  removeOrphans<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<void>;
  /** Returns the jobs that are retained as failed, without reading them. */
  findFailed<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>>;
  /** Returns the jobs that exist in any state, without reading them. */
  findExisting<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>>;
  /**
   * Adds jobs for a user that may run no scripts, by a function of the server: existing jobs are skipped, and a job that is
   * retained as failed stays, while the new one gets an extended id.
   */
  publishByFunction<Data>(queue: Queue<Data>, jobs: readonly AddedJob<Data>[]): Promise<void>;
  /** Loads that function on each server that lacks it; has no effect on a server without functions. */
  loadPublishFunction<Data>(queue: Queue<Data>): Promise<void>;
  /** Whether an error means that the user lacks a permission: a user that may only add jobs cannot read or remove them. */
  isForbidden(error: unknown): boolean;
  /** Writes BullMQ's limit of the queue's event stream again if the server was emptied since the queue was opened. */
  restoreSettings<Data>(queue: Queue<Data>): Promise<void>;
  /** The time of the queue's server, in milliseconds since the epoch. */
  serverTimeMs<Data>(queue: Queue<Data>): Promise<number>;
  /** Returns traces of foreign publishers. Each call scans a part of the server's keys, and the next call continues. */
  findForeignPublishers<Data>(queue: Queue<Data>): Promise<ForeignPublishers>;
  /**
   * Returns the BullMQ names of the connected workers of the queue's name, in all shards; an empty text for one without
   * a name. Returns none where the server does not list its clients.
   */
  workerNames<Data>(queue: Queue<Data>): Promise<string[]>;
  /** Returns {@link ForeignPublishers.version}. */
  findForeignVersion<Data>(queue: Queue<Data>): Promise<string | null>;
}

/** Reads and writes the shard map through any queue of shard 0. Without a stored map there is one shard. */
export interface ShardStore {
  read<Data>(queue: Queue<Data>): Promise<ShardMap>;
  /** Reads the map if its version differs from that of `cached`; otherwise returns `cached`. */
  readIfChanged<Data>(queue: Queue<Data>, cached: ShardMap): Promise<ShardMap>;
  /** Writes a map if its version is the next one. Returns whether it was written. */
  write<Data>(queue: Queue<Data>, map: ShardMap): Promise<boolean>;
  /** Groups the first `count` shards, 0 to `count` - 1, by the server that has their keys. */
  byServer<Data>(queue: Queue<Data>, count: number): Promise<number[][]>;
  /** Returns the shards that have jobs in these states in any queue that workers serve. */
  withJobs<Data>(
    queue: Queue<Data>,
    shards: readonly number[],
    states: readonly string[],
  ): Promise<Set<number>>;
}

/** A call to the queue failed or timed out; some of its jobs may have been added. `cause` is the driver's error. */
export class QueueUnavailableError extends Error {
  readonly code = 'queue_unavailable';
}

/** The queue has no capacity for more jobs until workers end some. The caller should retain the job and retry later. */
export class QueueFullError extends QueueUnavailableError {}

/** A job that the queue rejected for its data. */
export interface RejectedJob {
  jobId: string;
  error: unknown;
}

/** The queue rejected jobs for their data and will do so again. All other jobs of the same call were added. */
export class JobsRejectedError extends Error {
  readonly code = 'jobs_rejected';
  readonly rejected: readonly RejectedJob[];

  constructor(rejected: readonly RejectedJob[]) {
    const [first] = rejected;
    const reason = first?.error instanceof Error ? first.error.message : String(first?.error);
    super(`The queue rejected the data of ${rejected.length} jobs, the first with: ${reason}`, {
      cause: first?.error,
    });
    this.rejected = rejected;
  }
}

/** Traces of foreign publishers, which are not configured for this queue. */
export interface ForeignPublishers {
  /** Number of jobs that wait under each other prefix, where no worker takes them. */
  foreignQueues: { prefix: string; jobs: number }[];
  /** The version of BullMQ that opened the queue last, as `bullmq:5.1.0`, if its major version differs from Runhook's. */
  version: string | null;
}

export interface PeekedJob<Data> {
  id: string;
  data: Data;
  /** Time at which the job was added, in milliseconds since the epoch. */
  timestamp: number;
  shard: number;
}

/** A kind of server for BullMQ. Everything that is specific to it is behind this interface. */
export interface BackendKind<Name extends string = string> {
  name: Name;
  /** URL schemes of this kind. */
  schemes: readonly string[];
  /** Throws an error that describes a problem of the URL without any part of it. */
  checkUrl(url: string): void;
  /**
   * @param connectMs connection timeout of a producer; a worker retries without limit
   * @param silentMs time without a reply after which a connection counts as dead
   */
  connect(url: string, connectMs: number, silentMs: number): Connector;
  /**
   * Updates BullMQ's schema for this release and returns its version; null where there is no schema. Grants roles the use
   * of the queue.
   */
  migrate(url: string, roles?: readonly string[]): Promise<number | null>;
}
