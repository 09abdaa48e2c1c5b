import { WEBHOOK_DELIVERIES } from '@runhook/contract';
import { isConversionRejection, isDatabaseRejecting, type Pool } from '@runhook/database';
import { type MicroBatcher, Semaphore } from '@runhook/runtime';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { type AttemptRecord, recordAttempts } from './attempts.ts';
import { type BatchOptions, createBatcher, withoutResults } from './batches.ts';
import { type CommitOutcome, commitEach, commitEvents, type EventCommit } from './commit-events.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/*
 * The commit batcher, one of the four admission controls on the path of an event
 * (docs/architecture.md#admission-controls). It commits events and results of attempts in batches, and decides whether
 * an event may be attempted before its commit.
 *
 * | State | Entered when | First attempts begin |
 * |---|---|---|
 * | flowing | no result has waited for a second | before the commit of their event |
 * | stalled | a result has waited for a second: for a lock, a disk, a database that is unavailable or rejects it | after the commit of their event |
 *
 * It returns to flowing once no result has waited that long. So a process that is killed repeats only first attempts
 * that began before it was stalled.
 */

const STALLED_AFTER_MS = 1_000;
/**
 * Results are gathered before a commit: no request waits for them, and with one commit for each, a quiet service would
 * spend more on commits than on deliveries. A busy service fills the batch at once.
 */
const RESULT_GATHERING = { ms: 40, startSize: 20 };
/** Number of deliveries of a page: few while other events are committed, whose statements the page must not delay. */
const PAGE_SIZE = { concurrent: 50, idle: 500 };
/** Time without another event after which pages are large. */
const IDLE_AFTER_MS = 1_000;
const PAGE_PAUSE_FACTOR = 2;
/** Limits the pause, because a page may wait for an unavailable database. */
const PAGE_PAUSE_MAX_MS = 100;

export interface CommitBatcherOptions extends BatchOptions {
  pool: Pool;
  /** Ends the waits for commits of results, later than `stopping`: a request whose result is not recorded is sent again. */
  drainEnd: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'batchSize' | 'jobErrors'>;
}

export class CommitBatcher {
  readonly #options: CommitBatcherOptions;
  readonly #plannedCommits: MicroBatcher<EventCommit, CommitOutcome>;
  readonly #attemptedCommits: MicroBatcher<EventCommit, CommitOutcome>;
  readonly #attempts: MicroBatcher<AttemptRecord, void>;
  /** Results that wait for their commit, oldest first. */
  readonly #pendingResults = new Set<{ sinceMs: number }>();
  readonly #pageLock = new Semaphore(1);
  #lastEventMs = Number.NEGATIVE_INFINITY;

  constructor(options: CommitBatcherOptions) {
    const { pool, drainEnd } = options;
    this.#options = options;
    const resultOptions = { ...options, stopping: drainEnd };
    const isRetryable = (error: unknown) => this.#isRejection(error);
    const tuning = { isRetryable, gather: RESULT_GATHERING };
    const commit = (commits: EventCommit[]) => commitEach(pool, commits);
    this.#plannedCommits = createBatcher(options, 'commit', commit);
    this.#attemptedCommits = createBatcher(resultOptions, 'commit_attempted', commit, tuning);
    const record = withoutResults<AttemptRecord>((attempts) => recordAttempts(pool, attempts));
    this.#attempts = createBatcher(resultOptions, 'record_attempts', record, tuning);
  }

  /** Whether an event must be committed before its first attempts begin. */
  get mustCommitFirst(): boolean {
    const [oldest] = this.#pendingResults;
    return oldest !== undefined && performance.now() - oldest.sinceMs >= STALLED_AFTER_MS;
  }

  /** Commits an event with its deliveries, before their first attempts. */
  commitEvent(commit: EventCommit): Promise<CommitOutcome> {
    this.#lastEventMs = performance.now();
    return this.#plannedCommits.add(commit);
  }

  /** Commits an event whose first attempts have begun or ended; retried while the database rejects valid data. */
  commitAttempted(commit: EventCommit): Promise<CommitOutcome> {
    this.#lastEventMs = performance.now();
    return this.#commitResult(() => this.#attemptedCommits.add(commit));
  }

  /** Resolves once the attempt is committed. */
  recordAttempt(attempt: AttemptRecord): Promise<void> {
    return this.#commitResult(() => this.#attempts.add(attempt));
  }

  /**
   * Commits a page of an event with very many deliveries. Pages run one after another, and while other events are
   * committed, a pause of twice the page's duration follows, at most 100 ms, so that an account with a thousand
   * subscriptions does not keep the database busy.
   * @param plan makes a page of the passed size immediately before its commit, so that the plan is current
   */
  async commitPage(plan: (size: number) => EventCommit): Promise<CommitOutcome> {
    await this.#pageLock.acquire();
    const startMs = performance.now();
    try {
      const commit = plan(this.#isIdle() ? PAGE_SIZE.idle : PAGE_SIZE.concurrent);
      const { pool, writes } = this.#options;
      const [outcome] = await retryWhileUnavailable(this.#options, () =>
        writes.track('events', () => commitEvents(pool, [commit])),
      );
      return outcome as CommitOutcome;
    } finally {
      const pauseMs = Math.min(PAGE_PAUSE_FACTOR * (performance.now() - startMs), PAGE_PAUSE_MAX_MS);
      if (this.#isIdle()) this.#pageLock.release();
      else setTimeout(() => this.#pageLock.release(), pauseMs);
    }
  }

  #isIdle(): boolean {
    return performance.now() - this.#lastEventMs > IDLE_AFTER_MS;
  }

  /** Commits a result. Retries also while the partitions of its day are changed. */
  async #commitResult<Result>(commit: () => Promise<Result>): Promise<Result> {
    const { drainEnd: stopping, logger } = this.#options;
    const result = { sinceMs: performance.now() };
    this.#pendingResults.add(result);
    try {
      return await retryWhileUnavailable({ stopping, logger, isRetryable: isConversionRejection }, commit);
    } finally {
      this.#pendingResults.delete(result);
    }
  }

  /** Whether to retry a result: while the database rejects valid data, because its request cannot be undone. */
  #isRejection(error: unknown): boolean {
    if (!isDatabaseRejecting(error)) return false;
    this.#options.metrics.jobErrors[WEBHOOK_DELIVERIES].inc();
    return true;
  }
}
