import { WEBHOOK_DELIVERIES } from '@runhook/contract';
import { isConversionRejection, isDatabaseRefusing, type Pool } from '@runhook/database';
import { type MicroBatcher, Semaphore } from '@runhook/runtime';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { type AttemptRecord, recordAttempts } from './attempts.ts';
import { type BatchOptions, createBatcher, withoutResults } from './batches.ts';
import { type CommitOutcome, commitEach, commitEvents, type EventCommit } from './commit-events.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/*
 * The commit batcher, one of the four admission controls on the path of an event (docs/architecture.md#admission-controls).
 * It commits events and results of attempts in batches, and decides whether an event may be attempted before its commit.
 *
 * | State | Entered when | First attempts begin |
 * |---|---|---|
 * | flowing | no result has waited for a second | before the commit of their event |
 * | stalled | a result has waited for a second: for a lock, a disk, an unavailable database | after the commit of their event |
 * | rejecting | PostgreSQL rejected a commit of results, though not for their data | after the commit of their event |
 *
 * It is flowing again once the results that waited are committed. So a process that is killed repeats at most the first attempts that
 * were in flight when the wait began.
 */

const STALLED_AFTER_MS = 1_000;
/**
 * The commit of a result waits for others: no request waits for it, and a commit for each costs a quiet service more than the
 * delivery. A busy service always has enough.
 */
const RESULTS = { ms: 40, enough: 20 };
/** Deliveries of a page: while other events are committed, whose statements it must not delay, and otherwise. */
const PAGE_SIZE = { concurrent: 50, alone: 500 };
/** After this time without another event, pages are alone. */
const ALONE_AFTER_MS = 1_000;
const PAGE_PAUSE_TIMES = 2;
/** Bounds the pause after a page that waited for an unavailable database. */
const PAGE_PAUSE_MAX_MS = 100;

export interface CommitBatcherOptions extends BatchOptions {
  pool: Pool;
  /** Ends, later than `stopping`, the waits of results of attempts: a request whose result is not recorded is sent again. */
  drainEnd: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'batchSize' | 'jobFaults'>;
}

export class CommitBatcher {
  readonly #options: CommitBatcherOptions;
  readonly #planned: MicroBatcher<EventCommit, CommitOutcome>;
  readonly #attempted: MicroBatcher<EventCommit, CommitOutcome>;
  readonly #attempts: MicroBatcher<AttemptRecord, void>;
  /** Results that wait for their commit, the oldest first. */
  readonly #results = new Set<{ sinceMs: number }>();
  #isRejecting = false;
  readonly #pageTurn = new Semaphore(1);
  #lastEventMs = Number.NEGATIVE_INFINITY;

  constructor(options: CommitBatcherOptions) {
    const { pool, drainEnd } = options;
    this.#options = options;
    this.#planned = createBatcher(options, 'commit', (commits: EventCommit[]) => commitEach(pool, commits));
    const ofResults = { ...options, stopping: drainEnd };
    const commitResults = async (commits: EventCommit[]) => {
      const outcomes = await commitEach(pool, commits);
      this.#isRejecting = false;
      return outcomes;
    };
    const outlasts = (error: unknown) => this.#isRejection(error);
    this.#attempted = createBatcher(ofResults, 'attempted', commitResults, {
      outlasts: (error) => {
        this.#isRejecting = outlasts(error);
        return this.#isRejecting;
      },
      gather: RESULTS,
    });
    const record = withoutResults<AttemptRecord>((attempts) => recordAttempts(pool, attempts));
    this.#attempts = createBatcher(ofResults, 'record', record, { outlasts, gather: RESULTS });
  }

  /** Whether an event must be committed before its first attempts begin. */
  get mustCommitFirst(): boolean {
    if (this.#isRejecting) return true;
    const [oldest] = this.#results;
    return oldest !== undefined && performance.now() - oldest.sinceMs >= STALLED_AFTER_MS;
  }

  /** Commits an event with its deliveries, before their first attempts. */
  commitEvent(commit: EventCommit): Promise<CommitOutcome> {
    this.#lastEventMs = performance.now();
    return this.#planned.add(commit);
  }

  /** As `commitEvent`, for deliveries whose first attempts have begun or ended: retried while the database rejects it. */
  commitAttempted(commit: EventCommit): Promise<CommitOutcome> {
    this.#lastEventMs = performance.now();
    return this.#commitResult(() => this.#attempted.add(commit));
  }

  /** Resolves once the attempt is committed. */
  recordAttempt(attempt: AttemptRecord): Promise<void> {
    return this.#commitResult(() => this.#attempts.add(attempt));
  }

  /**
   * Commits a page of the deliveries of an event with very many. Pages run one after another, and while other events are
   * committed, each is followed by a pause of twice its duration, so that an account with a thousand subscriptions does not
   * keep the database busy.
   * @param plan makes a page of the given size once it is its turn, so that the plan is current
   */
  async commitPage(plan: (size: number) => EventCommit): Promise<CommitOutcome> {
    await this.#pageTurn.acquire();
    const startMs = performance.now();
    try {
      const commit = plan(this.#arePagesAlone() ? PAGE_SIZE.alone : PAGE_SIZE.concurrent);
      const { pool, writes } = this.#options;
      const [outcome] = await retryWhileUnavailable(this.#options, () =>
        writes.track('events', () => commitEvents(pool, [commit])),
      );
      return outcome as CommitOutcome;
    } finally {
      const pauseMs = Math.min(PAGE_PAUSE_TIMES * (performance.now() - startMs), PAGE_PAUSE_MAX_MS);
      if (this.#arePagesAlone()) this.#pageTurn.release();
      else setTimeout(() => this.#pageTurn.release(), pauseMs);
    }
  }

  #arePagesAlone(): boolean {
    return performance.now() - this.#lastEventMs > ALONE_AFTER_MS;
  }

  /** Retries also while the default partition of the day is converted. */
  async #commitResult<Result>(commit: () => Promise<Result>): Promise<Result> {
    const { drainEnd: stopping, logger } = this.#options;
    const result = { sinceMs: performance.now() };
    this.#results.add(result);
    try {
      return await retryWhileUnavailable({ stopping, logger, outlasts: isConversionRejection }, commit);
    } finally {
      this.#results.delete(result);
    }
  }

  /** A request cannot be taken back, so its result is retried for as long as the database rejects it. */
  #isRejection(error: unknown): boolean {
    if (!isDatabaseRefusing(error)) return false;
    this.#options.metrics.jobFaults[WEBHOOK_DELIVERIES].inc();
    return true;
  }
}
