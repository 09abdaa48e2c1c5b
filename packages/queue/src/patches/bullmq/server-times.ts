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
interface Inside {
  addJob(job: NewJob, ...given: unknown[]): Promise<unknown>;
  addJobs(entries: { job: NewJob }[]): Promise<unknown>;
  waitForJob(seconds: number): Promise<{ score: number } | null>;
  /** Present on Redis. */
  execCommand?(client: unknown, name: string, given: unknown[]): unknown;
  /** Present on PostgreSQL. */
  run?(name: string, given: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** Returns the same queue or worker, which exchanges times of `clock` with its server. */
export function withServerTimes<Of extends { getBackend(): unknown }>(of: Of, clock: Clock): Of {
  const inside = of.getBackend() as Inside;
  const aheadMs = () => clock.nowMs() - Date.now();
  const { addJob, addJobs, waitForJob } = inside;
  const added = <Job extends NewJob>(job: Job) => ({ ...job, timestamp: job.timestamp + aheadMs() });
  inside.addJob = (job, ...given) => addJob.call(inside, added(job), ...given);
  inside.addJobs = (entries) =>
    addJobs.call(
      inside,
      entries.map((entry) => ({ ...entry, job: added(entry.job) })),
    );
  inside.waitForJob = async (seconds) => {
    const marker = await waitForJob.call(inside, seconds);
    return marker && { ...marker, score: untilHere(marker.score, aheadMs()) };
  };
  if (inside.execCommand) convertRedis(inside, inside.execCommand, aheadMs);
  else if (inside.run) convertPostgres(inside, inside.run, aheadMs);
  else throw new Error('this version of BullMQ calls its server in another way');
  return of;
}

function convertRedis(
  inside: Inside,
  execCommand: NonNullable<Inside['execCommand']>,
  aheadMs: () => number,
): void {
  inside.execCommand = (client, name, given) => {
    const index = REDIS_TIMES[name];
    if (index === undefined) return execCommand.call(inside, client, name, given);
    const converted = given.with(index, Number(given[index]) + aheadMs());
    return Promise.resolve(execCommand.call(inside, client, name, converted)).then((result) =>
      // Scripts that return a worker's next job also return the time at which the next delayed one is due.
      Array.isArray(result) && typeof result[3] === 'number'
        ? result.with(3, untilHere(result[3], aheadMs()))
        : result,
    );
  };
}

function convertPostgres(inside: Inside, run: NonNullable<Inside['run']>, aheadMs: () => number): void {
  inside.run = async (name, given) => {
    const converted = [...given];
    for (const index of POSTGRES_TIMES[name] ?? []) converted[index] = Number(given[index]) + aheadMs();
    const result = await run.call(inside, name, converted);
    for (const row of result.rows) {
      const due = row.next_delay;
      if (due !== undefined && due !== null) row.next_delay = String(untilHere(Number(due), aheadMs()));
    }
    return result;
  };
}

/** Converts a time of the server to the local clock. 0 and 1 are not times. */
function untilHere(until: number, aheadMs: number): number {
  return until <= 1 ? until : Math.max(2, until - aheadMs);
}
