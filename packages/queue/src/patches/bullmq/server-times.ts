import type { Clock } from '@runhook/runtime/server-clock';

/*
 * BullMQ takes all times from the clock of its host: when a job was added, when it is due, and which jobs are due.
 * Processes whose clocks differ would take jobs too early or too late. So every time that is sent to the queue's server
 * is converted to one clock, and every time that is received from it back to the host's, in BullMQ's commands.
 */

/** Index of the time among the keys and arguments of a Redis script. */
const REDIS_TIMES: Readonly<Record<string, number>> = {
  moveToActive: 12,
  moveToFinished: 15,
  moveToDelayed: 12,
  retryJob: 12,
  moveStalledJobsToWait: 11,
  addJobScheduler: 17,
  updateJobScheduler: 16,
};

/** Indexes of the times among the parameters of a PostgreSQL statement. */
const POSTGRES_TIMES: Readonly<Record<string, readonly number[]>> = {
  move_to_active: [3],
  next_signal: [2],
  move_to_completed: [4],
  move_to_completed_fetch: [4, 9],
  move_to_failed: [5],
  move_to_failed_fetch: [5, 10],
  move_to_delayed: [3],
  move_active_to_wait: [3],
  move_stalled_jobs_to_wait: [2],
  extend_lock: [4],
  extend_locks: [4],
  add_job_scheduler: [7],
  update_job_scheduler: [5],
  get_rate_limit_ttl: [2],
};

interface NewJob {
  timestamp: number;
}

/** Members of a BullMQ back end that are used here. */
interface BackendInternals {
  addJob(job: NewJob, ...args: unknown[]): Promise<unknown>;
  addJobs(entries: { job: NewJob }[]): Promise<unknown>;
  waitForJob(seconds: number): Promise<{ score: number } | null>;
  /** Present on Redis. */
  execCommand?(client: unknown, name: string, args: unknown[]): unknown;
  /** Present on PostgreSQL. */
  run?(name: string, args: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** Returns the same queue or worker, which exchanges times of `clock` with its server. */
export function withServerTimes<Client extends { getBackend(): unknown }>(
  client: Client,
  clock: Clock,
): Client {
  const backend = client.getBackend() as BackendInternals;
  const aheadMs = () => clock.nowMs() - Date.now();
  const { addJob, addJobs, waitForJob } = backend;
  const convertTimestamp = <Job extends NewJob>(job: Job) => ({
    ...job,
    timestamp: job.timestamp + aheadMs(),
  });
  backend.addJob = (job, ...args) => addJob.call(backend, convertTimestamp(job), ...args);
  backend.addJobs = (entries) =>
    addJobs.call(
      backend,
      entries.map((entry) => ({ ...entry, job: convertTimestamp(entry.job) })),
    );
  backend.waitForJob = async (seconds) => {
    const marker = await waitForJob.call(backend, seconds);
    return marker && { ...marker, score: toLocalTime(marker.score, aheadMs()) };
  };
  if (backend.execCommand) convertTimesOnRedis(backend, backend.execCommand, aheadMs);
  else if (backend.run) convertTimesOnPostgres(backend, backend.run, aheadMs);
  else throw new Error('this version of BullMQ calls its server in another way');
  return client;
}

function convertTimesOnRedis(
  backend: BackendInternals,
  execCommand: NonNullable<BackendInternals['execCommand']>,
  aheadMs: () => number,
): void {
  backend.execCommand = (client, name, args) => {
    const index = REDIS_TIMES[name];
    if (index === undefined) return execCommand.call(backend, client, name, args);
    const converted = args.with(index, Number(args[index]) + aheadMs());
    return Promise.resolve(execCommand.call(backend, client, name, converted)).then((result) =>
      // Scripts that return a worker's next job also return the time at which the next delayed one is due.
      Array.isArray(result) && typeof result[3] === 'number'
        ? result.with(3, toLocalTime(result[3], aheadMs()))
        : result,
    );
  };
}

function convertTimesOnPostgres(
  backend: BackendInternals,
  run: NonNullable<BackendInternals['run']>,
  aheadMs: () => number,
): void {
  backend.run = async (name, args = []) => {
    const converted = [...args];
    for (const index of POSTGRES_TIMES[name] ?? []) converted[index] = Number(args[index]) + aheadMs();
    const result = await run.call(backend, name, converted);
    for (const row of result.rows) {
      const dueMs = row.next_delay;
      if (dueMs !== undefined && dueMs !== null)
        row.next_delay = String(toLocalTime(Number(dueMs), aheadMs()));
    }
    return result;
  };
}

/** Converts a time of the server to the local clock. 0 and 1 are not times. */
function toLocalTime(serverMs: number, aheadMs: number): number {
  return serverMs <= 1 ? serverMs : Math.max(2, serverMs - aheadMs);
}
