import type { JobView, Queryable } from '@runhook/database';
import { approximateBytes } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';
import { drawNumbers, findJobs, keyOf, type Named } from './report-statements.ts';

const JOBS_BYTES_MAX = 16 * 1_024 * 1_024;

/** A job as it was at a version of the cached data. */
export interface JobAtVersion {
  version: string;
  /** Null if the account has no job with that id. */
  job: JobView | null;
}

/** A job, and the version of its cached caller; null for a console session, whose job is always read. */
type Wanted = Named & { version: string | null };

/** Caches jobs at a version; the statement that writes checks that the version is current. */
export class RememberedJobs {
  readonly #jobs = new LRUCache<string, JobAtVersion>({
    maxSize: JOBS_BYTES_MAX,
    sizeCalculation: approximateBytes,
  });

  /** Returns jobs in input order. Reads those that are not cached at the caller's version. */
  async of(database: Queryable, wanted: readonly Wanted[]): Promise<JobAtVersion[]> {
    const remembered = wanted.map((named) => this.#remembered(named));
    const unknown = wanted.filter((_, index) => remembered[index] === undefined);
    if (unknown.length === 0) return remembered as JobAtVersion[];
    const { version, found } = await findJobs(database, unknown);
    return wanted.map((named, index) => {
      const known = remembered[index];
      if (known !== undefined) return known;
      const job = found.get(keyOf(named)) ?? null;
      if (job !== null) this.#jobs.set(keyOf(named), { version, job });
      return { version, job };
    });
  }

  #remembered(named: Wanted): JobAtVersion | undefined {
    const known = this.#jobs.get(keyOf(named));
    return named.version === known?.version ? known : undefined;
  }
}

const RESERVE = 100;

/** Provides run ids for runs without a client-supplied id; draws a hundred at a time from the sequence. */
export class RunNumbers {
  #reserve: number[] = [];

  async next(database: Queryable, isFree: (id: number) => boolean): Promise<number> {
    while (true) {
      const id = this.#reserve.shift();
      if (id === undefined) this.#reserve.push(...(await drawNumbers(database, RESERVE)));
      else if (isFree(id)) return id;
    }
  }
}
