import type { JobView, Queryable } from '@runhook/database';
import { approximateBytes } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';
import { type AccountScopedId, findJobs, keyOf } from './report-reads.ts';

const JOBS_BYTES_MAX = 16 * 1_024 * 1_024;

/** A job at a value of `cache_version`, which every change of a job or of a caller's permissions raises. */
export interface JobAtVersion {
  cacheVersion: string;
  /** Null if the account has no job with that id. */
  job: JobView | null;
}

/** A job's id, and the version at which the caller was read; null for a console session, whose job is always read. */
type JobRequest = AccountScopedId & { version: string | null };

/** Caches jobs at a version; the statement that writes checks that the version is current. */
export class JobCache {
  readonly #jobs = new LRUCache<string, JobAtVersion>({
    maxSize: JOBS_BYTES_MAX,
    sizeCalculation: approximateBytes,
  });

  /** Returns jobs in input order. Reads those that are not cached at the caller's version. */
  async find(database: Queryable, requests: readonly JobRequest[]): Promise<JobAtVersion[]> {
    const cachedJobs = requests.map((request) => this.#findCached(request));
    const uncached = requests.filter((_, index) => cachedJobs[index] === undefined);
    if (uncached.length === 0) return cachedJobs as JobAtVersion[];
    const { version: cacheVersion, found } = await findJobs(database, uncached);
    return requests.map((request, index) => {
      const cached = cachedJobs[index];
      if (cached !== undefined) return cached;
      const job = found.get(keyOf(request)) ?? null;
      if (job !== null) this.#jobs.set(keyOf(request), { cacheVersion, job });
      return { cacheVersion, job };
    });
  }

  #findCached(request: JobRequest): JobAtVersion | undefined {
    const cached = this.#jobs.get(keyOf(request));
    return request.version === cached?.cacheVersion ? cached : undefined;
  }
}
