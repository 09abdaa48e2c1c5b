import type { ShardMap } from '@runhook/contract';
import type { Processor, Queue, Telemetry, Worker, WorkerOptions } from 'bullmq';

export type TunedWorkerOptions = Omit<WorkerOptions, 'connection' | 'prefix'>;

/** A connection without a reply for so long counts as dead: the network may drop one without closing it. */
export const SILENT_MS = 15_000;

/**
 * Where a job is: `queued` in a list or set that workers take from, or locked by a worker; `ended` and retained as completed or
 * failed; `orphaned` when its key exists but no list or set has it, so that no worker ever takes it and no job with its id can be added;
 * `unsearched` when it is queued or orphaned, and the wait list is too long to search for it (2,000,000 entries).
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
  /** The map of shards beside the queue; null where a queue cannot be divided. */
  shards: ShardStore | null;
  /**
   * Which of the queues may have jobs of these states, for less than asking each: one call where all of them are on a server
   * and nothing happens.
   */
  having<Data>(queues: readonly Queue<Data>[], states: readonly string[]): Promise<Set<Queue<Data>>>;
  /** Up to so many jobs are added one by one, because its bulk call costs more than those. */
  addedSinglyMax: number;
  /** Whether an error says that the server has no room left, and takes nothing until it has. */
  isFull(error: unknown): boolean;
  /** Whether an error of the server says that the data of a job is invalid; see {@link JobsRejectedError}. */
  isJobFault(error: unknown): boolean;
  /** Whether shards of a queue may be on several servers. */
  isSpread: boolean;
  /** How much of its room the server of the queue uses, from 0 to 1; 0 where it does not tell. */
  usedShare<Data>(queue: Queue<Data>): Promise<number>;
  /** What the server of the queue does with what it holds once it is full, in its own words; null when it keeps everything. */
  evictionPolicy<Data>(queue: Queue<Data>): Promise<string | null>;
  /**
   * Jobs that wait, the first in line first, read without what a full server refuses. Empty where a full server can be
   * worked off the usual way.
   */
  peek<Data>(queue: Queue<Data>, count: number): Promise<Omit<PeekedJob<Data>, 'shard'>[]>;
  /** Removes jobs that wait or are delayed, without what a full server refuses. */
  discard<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<void>;
  /** Delayed jobs, the last ones first. */
  lastDelayed<Data>(queue: Queue<Data>, count: number): Promise<string[]>;
  /** Whether any job is kept as failed; asked with each event that is published. BullMQ's own count reads every job. */
  hasFailed<Data>(queue: Queue<Data>): Promise<boolean>;
  /**
   * The state of each job; a job that does not exist is absent from the result. No list is searched for each job: on Redis the wait list is read
   * once for all of them, and not at all if it has more than 2,000,000 entries.
   */
  jobStates<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Map<string, JobState>>;
  /** Removes the keys of those jobs that are orphaned, so that jobs with their ids can be added. */
  removeOrphans<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<void>;
  /** Which of the jobs are kept as failed, without reading them. */
  failedAmong<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>>;
  /** Which of the jobs there are, in any state, without reading them. */
  present<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>>;
  /** Whether an error says that our user may not do this: one that may add jobs cannot read or remove them. */
  isForbidden(error: unknown): boolean;
  /** Writes what BullMQ keeps of the queue's settings, if somebody has emptied the server since the queue was opened. */
  keepSettings<Data>(queue: Queue<Data>): Promise<void>;
  /** The time of the queue's server, in milliseconds since the epoch. */
  serverTimeMs<Data>(queue: Queue<Data>): Promise<number>;
  /** What others have left on the server that does not fit; a look at a part of it, which the next goes on from. */
  strangers<Data>(queue: Queue<Data>): Promise<Strangers>;
  /** As {@link Strangers.version}. */
  strangeVersion<Data>(queue: Queue<Data>): Promise<string | null>;
}

/** The map of shards, by way of any queue of shard 0. Whoever reads none finds one shard. */
export interface ShardStore {
  read<Data>(queue: Queue<Data>): Promise<ShardMap>;
  /** As `read`, when the version is not that of the map that is known; else the map that is known. */
  readIfChanged<Data>(queue: Queue<Data>, known: ShardMap): Promise<ShardMap>;
  /** Writes a map if its version is the next one; whether it was. */
  write<Data>(queue: Queue<Data>, map: ShardMap): Promise<boolean>;
  /** The shards from 0 to `count`, together with those on the same server. */
  byServer<Data>(queue: Queue<Data>, count: number): Promise<number[][]>;
  /** Which of the shards have jobs of these states in any queue that workers serve. */
  withJobs<Data>(
    queue: Queue<Data>,
    shards: readonly number[],
    states: readonly string[],
  ): Promise<Set<number>>;
}

/** The queue did not take a call; nothing was added that the caller may rely on. `cause` holds the driver's error. */
export class QueueUnavailableError extends Error {
  readonly code = 'queue_unavailable';
}

/** The queue has no room for more; what it has goes on. Whoever can, keeps what it wanted to add and tries later. */
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

/** Traces of publishers that are not set up for this queue. */
export interface Strangers {
  /** Below another prefix, where nobody takes them. */
  elsewhere: { prefix: string; jobs: number }[];
  /** The BullMQ that opened the queue last, as `bullmq:5.1.0`, if its major version is not ours. */
  version: string | null;
}

/** A job as it waits. */
export interface PeekedJob<Data> {
  id: string;
  data: Data;
  /** When it was added, in milliseconds since the epoch. */
  timestamp: number;
  shard: number;
}

/** A kind of server that BullMQ can keep its jobs on: all that the rest does not know of it. */
export interface BackendKind<Name extends string = string> {
  name: Name;
  /** Of the URLs that are its own. */
  schemes: readonly string[];
  /** Throws a sentence that says what is wrong with a URL of its own, and repeats nothing of it. */
  checkUrl(url: string): void;
  /**
   * @param connectMs how long a producer's connection may take; a worker's is tried for ever
   * @param silentMs after this time without a reply a connection counts as dead
   */
  connect(url: string, connectMs: number, silentMs: number): Connector;
  /** Brings a schema of BullMQ's own to what this release needs and answers its version; null where there is none. */
  migrate(url: string): Promise<number | null>;
}
