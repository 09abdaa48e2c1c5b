import type { EventQueue, NextJob } from '@runhook/queue';
import { type Health, type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import { Gauge, type Registry } from 'prom-client';
import type { StartedWorkers } from '../shard-worker.ts';

/** Jobs of a worker, counted by its processor. */
export interface JobsInFlight {
  current: number;
  /** Total number of started jobs. */
  started: number;
}

/** The worker does not work: its loop has ended, or it takes no job although one waits. */
class WorkerStoppedError extends Error {
  readonly code: 'WORKER_STOPPED' | 'WORKER_STUCK';

  constructor(code: 'WORKER_STOPPED' | 'WORKER_STUCK', message: string) {
    super(message);
    this.code = code;
  }
}

/** Checks for the health endpoints whether a worker is alive. */
export interface WorkerWatch {
  /** Polls the queue if the worker appears idle; throws when the queue does not respond. */
  poll(): Promise<void>;
  /** @throws WorkerStoppedError */
  check(): void;
}

interface WatchedLoop {
  readonly name: string;
  isRunning(): boolean;
  /** Whether the worker is paused on purpose. */
  isPaused?(): boolean;
}

export interface WorkerWatchOptions {
  worker: WatchedLoop;
  jobsInFlight: JobsInFlight;
  /** Maximum number of jobs that the worker has in flight. */
  concurrency: number;
  nextJob: () => Promise<Pick<NextJob, 'id' | 'isPaused'> | null>;
  /** Time for which the same job may be next while the worker has capacity and starts no job; default 6,000. */
  stuckAfterMs?: number;
  nowMs?: () => number;
}

/**
 * A worker whose loop has ended reports that. A worker whose connection is dead, or whose loop hangs, still reports
 * that it runs: it is detected by a job that remains the next one while the worker has capacity. Other dispatchers
 * take jobs from the same queue, so an idle healthy worker does not see the same job for long. While the queue does not
 * respond, the worker is not considered stuck, because it has to wait too.
 */
export function createWorkerWatch({
  worker,
  jobsInFlight,
  concurrency,
  nextJob,
  stuckAfterMs = 6_000,
  nowMs = () => performance.now(),
}: WorkerWatchOptions): WorkerWatch {
  let startedAtPoll = -1;
  let waiting: { jobId: string; sinceMs: number } | null = null;

  return {
    async poll() {
      const isIdle = jobsInFlight.current < concurrency && jobsInFlight.started === startedAtPoll;
      startedAtPoll = jobsInFlight.started;
      if (!isIdle || worker.isPaused?.()) {
        waiting = null;
        return;
      }
      const next = await nextJob().catch((error: unknown) => {
        waiting = null;
        throw error;
      });
      if (next === null || next.isPaused || jobsInFlight.started !== startedAtPoll) waiting = null;
      else if (waiting?.jobId !== next.id) waiting = { jobId: next.id, sinceMs: nowMs() };
    },
    check() {
      const { name } = worker;
      if (worker.isPaused?.()) return;
      if (!worker.isRunning()) throw new WorkerStoppedError('WORKER_STOPPED', `${name} is not running`);
      if (waiting === null || jobsInFlight.started !== startedAtPoll) return;
      if (nowMs() - waiting.sinceMs >= stuckAfterMs)
        throw new WorkerStoppedError(
          'WORKER_STUCK',
          `${name} does not take the waiting job ${waiting.jobId}`,
        );
    },
  };
}

/** Interval of polls of the queue: with `stuckAfterMs`, a worker that takes no jobs is detected within ten seconds. */
const POLL_EVERY_MS = 2_000;

export interface WatchedWorkers extends StartedWorkers {
  nextJobs: EventQueue['nextJobs'];
}

/** Registers health checks and metrics of the workers. A dispatcher that does not work must be neither live nor ready. */
export function watchWorkers(
  { health, lifecycle, logger, registry }: WatchWorkersProcess,
  watched: readonly WatchedWorkers[],
  maintenance: { readonly name: string; isRunning(): boolean },
  concurrency: number,
): void {
  const watches = watched.map((one) => watchShards(one, concurrency));
  const polling = startPeriodic(
    POLL_EVERY_MS,
    async () => void (await Promise.all(watches.map((watch) => watch.poll()))),
    (error) => logger.debug({ err: error }, 'the queue could not be polled'),
  );
  // Not awaited: a poll that hangs must not delay the stop.
  lifecycle.onClose('worker watch', () => void polling.stop());

  function check(): void {
    // During a stop a failing check would make the orchestrator kill the process before its jobs have ended.
    if (lifecycle.stopping) return;
    for (const watch of watches) watch.check();
    if (!maintenance.isRunning())
      throw new WorkerStoppedError('WORKER_STOPPED', `${maintenance.name} is not running`);
  }
  health.register('workers', 'live', check);
  health.register('workers', 'ready', check);
  registerWorkerMetrics(registry, watched, concurrency);
}

interface WatchWorkersProcess {
  health: Health;
  lifecycle: Lifecycle;
  logger: Logger;
  registry: Registry;
}

/** Watches the worker of each shard, as workers are opened and closed; all shards are polled together. */
function watchShards({ workers, jobsInFlight, nextJobs }: WatchedWorkers, concurrency: number): WorkerWatch {
  const watches = new Map<WatchedLoop, WorkerWatch>();

  function currentWatches(): WorkerWatch[] {
    const { workers: running } = workers;
    const present = new Set<WatchedLoop>(running.values());
    for (const worker of watches.keys()) if (!present.has(worker)) watches.delete(worker);
    return Array.from(running, ([shard, worker]) => {
      const watch = watches.get(worker) ?? createShardWatch(worker, shard);
      watches.set(worker, watch);
      return watch;
    });
  }

  let nextJobByShard: ReturnType<typeof nextJobs> | null = null;

  function createShardWatch(worker: WatchedLoop, shard: number): WorkerWatch {
    // The workers of all shards share the limit of jobs in flight.
    const jobs = {
      get current() {
        return countInFlight(jobsInFlight);
      },
      get started() {
        return jobsInFlight.get(shard)?.started ?? 0;
      },
    };
    const nextJob = async () => {
      nextJobByShard ??= nextJobs();
      return (await nextJobByShard).get(shard) ?? null;
    };
    return createWorkerWatch({ worker, jobsInFlight: jobs, concurrency, nextJob });
  }

  return {
    async poll() {
      nextJobByShard = null;
      await Promise.all(currentWatches().map((watch) => watch.poll()));
    },
    check() {
      for (const watch of currentWatches()) watch.check();
    },
  };
}

function countInFlight(jobsInFlight: StartedWorkers['jobsInFlight']): number {
  let total = 0;
  for (const jobs of jobsInFlight.values()) total += jobs.current;
  return total;
}

function registerWorkerMetrics(
  registry: Registry,
  watched: readonly WatchedWorkers[],
  concurrency: number,
): void {
  const registers = [registry];
  const labelNames = ['queue'] as const;
  new Gauge({
    name: 'runhook_worker_running',
    help: "Whether the loop of the queue's worker runs in this process, on all shards that it serves.",
    labelNames,
    registers,
    collect() {
      for (const { workers } of watched) this.set({ queue: workers.name }, workers.isRunning() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'runhook_worker_jobs_in_flight',
    help: 'Jobs of the queue in flight in this process, over all shards.',
    labelNames,
    registers,
    collect() {
      for (const { workers, jobsInFlight } of watched)
        this.set({ queue: workers.name }, countInFlight(jobsInFlight));
    },
  });
  new Gauge({
    name: 'runhook_worker_concurrency',
    help: 'Maximum number of jobs of the queue in flight in this process.',
    registers,
  }).set(concurrency);
}
