import type { DeliveryJob, EventKey, JobRunEvent, LaneJob } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import { type MicroBatcher, Semaphore } from '@runhook/runtime';
import type { JobAlert } from '../policy/job-alerts.ts';
import type { CachedSubscription, Delivery } from '../policy/next-step.ts';
import type { RunDelivery } from '../policy/run-order.ts';
import {
  type AccountVersions,
  loadAccountVersions,
  loadSubscriptions,
  SubscriptionCache,
} from './accounts.ts';
import { type SubscriptionStatus, updateSubscriptionStatuses } from './attempts.ts';
import { createBatcher, withoutResults } from './batches.ts';
import { type Block, type BlockChange, changeBlocks, claimProbe } from './blocks.ts';
import { CommitBatcher, type CommitBatcherOptions } from './commit-batcher.ts';
import {
  type ClaimOptions,
  claimDeferred,
  deferDeliveries,
  hasDeferred,
  type LaneKey,
  loadDeferredKeys,
} from './deferred.ts';
import {
  type Cancellation,
  cancelDeliveries,
  type DeliveryKey,
  loadAccountId,
  loadDeliveries,
  loadPendingDeliveries,
  type PendingDelivery,
} from './deliveries.ts';
import { type EventState, loadEventStates, loadEvents, type PlannedEvent } from './event-states.ts';
import { deactivateGone, type GoneEndpoint } from './gone-endpoints.ts';
import { type JobKey, loadJobAlerts, storeJobAlert } from './job-alerts.ts';
import type { Quarantine } from './quarantine.ts';
import { type Draw, drawTokens, type RateUse, settleTokens } from './rate-buckets.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import {
  type EndedDelivery,
  holdDeliveries,
  loadRunDeliveries,
  loadUndispatchedOfRuns,
  markOutOfOrder,
  releaseSuccessors,
  type UnrecordedRuns,
  type WaitingDelivery,
} from './run-order.ts';
import { StatusCoalescer } from './status-coalescer.ts';
import { setAsideAmong } from './waiting.ts';

/** An account with a thousand webhooks of a thousand jobs each takes 10 MB; with the longest headers as well it takes 70 MB. */
const CACHED_BYTES_MAX = 96 * 1_024 * 1_024;
const STATUS_PERIOD_MS = 2_000;
/** Limits concurrent statements of one item each: a thousand lanes that poll must leave connections to the batches. */
const SINGLE_STATEMENTS_MAX = 3;

/** Limits the memory of a batch of deliveries with the largest events, 0.8 MB of JSON each. */
const LOADS_MAX = 32;

export interface DispatchRecordOptions extends CommitBatcherOptions {
  quarantine: Pick<Quarantine, 'setAsideStatus'>;
  /** Whether admins are notified by mail of a deactivation; false when omitted. */
  shouldNotifyAdmins?: boolean;
}

/**
 * Accesses PostgreSQL on the path of an event. Frequent calls of one item each are combined in one statement. All are
 * retried while the database is unavailable.
 */
export class DispatchRecord {
  /** Accounts with their subscriptions, cached in memory. */
  readonly accounts: SubscriptionCache;
  readonly commits: CommitBatcher;
  readonly #options: DispatchRecordOptions;
  readonly #accountLoads: MicroBatcher<number, AccountVersions | null>;
  readonly #subscriptionLoads: MicroBatcher<string, CachedSubscription | null>;
  readonly #states: MicroBatcher<PlannedEvent, EventState>;
  readonly #singleStatements = new Semaphore(SINGLE_STATEMENTS_MAX);
  readonly #loads: MicroBatcher<DeliveryKey, Delivery | null>;
  readonly #deferrals: MicroBatcher<DeliveryKey, void>;
  readonly #cancellations: MicroBatcher<Cancellation, void>;
  readonly #releases: MicroBatcher<EndedDelivery, void>;
  readonly #blocks: MicroBatcher<BlockChange, void>;
  readonly #statuses: StatusCoalescer;

  constructor(options: DispatchRecordOptions) {
    const { pool, writes, logger } = options;
    this.#options = options;
    this.commits = new CommitBatcher(options);
    this.#accountLoads = createBatcher(options, 'load_subscriptions', (ids) =>
      loadAccountVersions(pool, ids),
    );
    this.#subscriptionLoads = createBatcher(options, 'load_subscriptions', (ids) =>
      loadSubscriptions(pool, ids),
    );
    this.#states = createBatcher(options, 'load_event_states', (events) => loadEventStates(pool, events));
    this.#loads = createBatcher(options, 'load_deliveries', (keys) => loadDeliveries(pool, keys), {
      sizeMax: LOADS_MAX,
    });
    const defer = withoutResults<DeliveryKey>((keys) => deferDeliveries(pool, keys));
    this.#deferrals = createBatcher(options, 'defer', defer);
    const cancel = withoutResults<Cancellation>((cancellations) => cancelDeliveries(pool, cancellations));
    this.#cancellations = createBatcher(options, 'cancel', cancel);
    const release = withoutResults<EndedDelivery>((ended) => releaseSuccessors(pool, ended));
    this.#releases = createBatcher(options, 'release_successors', release);
    const block = withoutResults<BlockChange>((changes) => changeBlocks(pool, changes));
    this.#blocks = createBatcher(options, 'change_blocks', block);
    this.#statuses = new StatusCoalescer({
      write: (statuses) => writes.track('statuses', () => updateSubscriptionStatuses(pool, statuses)),
      periodMs: STATUS_PERIOD_MS,
      onError: (error) =>
        logger.warn({ err: error }, 'subscription statuses could not be written; retried in the next period'),
      onRejected: ({ subscriptionId }, error) => options.quarantine.setAsideStatus(subscriptionId, error),
    });
    this.accounts = new SubscriptionCache({
      loadVersions: (accountId) => this.#accountLoads.add(accountId),
      loadSubscription: (id) => this.#subscriptionLoads.add(id),
      bytesMax: CACHED_BYTES_MAX,
    });
  }

  /** Reads whether the event is on record and dispatched, and whether its account has the version of the plan. */
  loadEventState(event: PlannedEvent): Promise<EventState> {
    return this.#states.add(event);
  }

  /** Returns the event on record; null if there is none. */
  async loadEvent(key: EventKey): Promise<JobRunEvent | null> {
    const [event] = await this.#runSingle((pool) => loadEvents(pool, [key]));
    return event ?? null;
  }

  /** Returns the deliveries that an interrupted job of the event left pending. */
  loadPendingDeliveries(event: EventKey, attemptMs: number): Promise<PendingDelivery[]> {
    return this.#runSingle((pool) => loadPendingDeliveries(pool, event, attemptMs));
  }

  /** Returns null when the row of the delivery no longer exists. */
  loadDelivery(key: DeliveryKey): Promise<Delivery | null> {
    return this.#loads.add(key);
  }

  /** Defers a delivery to its lane. Resolves once its row is updated. */
  defer(key: DeliveryKey): Promise<void> {
    return this.#deferrals.add(key);
  }

  /** Takes the oldest deferred deliveries of a lane. No other caller gets the same ones. */
  claimDeferred(options: ClaimOptions): Promise<Delivery[]> {
    return this.#runSingle((pool) => claimDeferred(pool, options));
  }

  /** Deactivates the subscription of an endpoint, unless it was changed since the attempt. Returns whether it did. */
  deactivateGone(endpoint: GoneEndpoint): Promise<boolean> {
    return this.#runSingle((pool) =>
      deactivateGone(pool, endpoint, this.#options.shouldNotifyAdmins ?? false),
    );
  }

  loadDeferredKeys(options: Pick<ClaimOptions, keyof LaneKey | 'limit'>): Promise<DeliveryKey[]> {
    return this.#runSingle((pool) => loadDeferredKeys(pool, options));
  }

  /** Returns the deliveries of the runs to the subscription, of any day. */
  loadRunDeliveries(lane: LaneKey, runIds: readonly string[]): Promise<RunDelivery[]> {
    return this.#runSingle((pool) => loadRunDeliveries(pool, lane, runIds));
  }

  /** Returns the undispatched events of the runs; null if no run can have one. */
  loadUndispatchedOfRuns(runs: UnrecordedRuns): Promise<JobRunEvent[] | null> {
    return this.#runSingle((pool) => loadUndispatchedOfRuns(pool, runs));
  }

  /** Lets deliveries wait for earlier ones of their runs, unless these have ended meanwhile. */
  holdDeliveries(lane: LaneKey, waiting: readonly WaitingDelivery[]): Promise<void> {
    return this.#runSingle((pool) => holdDeliveries(pool, lane, waiting));
  }

  setAsideAmong(events: LaneKey & { eventIds: readonly string[] }): Promise<Set<string>> {
    return this.#runSingle((pool) => setAsideAmong(pool, events));
  }

  markOutOfOrder(keys: readonly DeliveryKey[]): Promise<void> {
    return this.#runSingle((pool) => markOutOfOrder(pool, keys));
  }

  /** Returns the deliveries that wait for this one to their lane. Resolves once their rows are updated. */
  releaseSuccessors(ended: EndedDelivery): Promise<void> {
    return this.#releases.add(ended);
  }

  hasDeferred(lane: LaneKey): Promise<boolean> {
    return this.#runSingle((pool) => hasDeferred(pool, lane));
  }

  /** Returns the account of a job of a previous release, which does not name it; null when its row no longer exists. */
  loadAccountId(job: DeliveryJob | LaneJob): Promise<number | null> {
    return this.#runSingle((pool) => loadAccountId(pool, job));
  }

  cancelDelivery(cancellation: Cancellation): Promise<void> {
    return this.#cancellations.add(cancellation);
  }

  /** Resolves once the block, or its end, is on record for every dispatcher. */
  changeBlock(change: BlockChange): Promise<void> {
    return this.#blocks.add(change);
  }

  claimProbe(subscriptionId: string): Promise<Block> {
    return this.#runSingle((pool) => claimProbe(pool, subscriptionId));
  }

  /** Draws up to `max` tokens of the subscription's rate limit; null if it has none. */
  drawTokens(subscriptionId: string, max: number): Promise<Draw | null> {
    return this.#runSingle((pool) => drawTokens(pool, subscriptionId, max));
  }

  /** Returns unused tokens. If that fails they are lost, because a second execution would add tokens. */
  async settleTokens(subscriptionId: string, use: RateUse): Promise<void> {
    const { pool, logger } = this.#options;
    await this.#singleStatements.acquire();
    try {
      await settleTokens(pool, subscriptionId, use);
    } catch (err) {
      logger.warn({ err, subscriptionId }, 'unused tokens of a rate limit could not be returned');
    } finally {
      this.#singleStatements.release();
    }
  }

  loadJobAlerts(job: JobKey): Promise<JobAlert[]> {
    return this.#runSingle((pool) => loadJobAlerts(pool, job));
  }

  storeJobAlert(job: JobKey, alert: JobAlert): Promise<void> {
    return this.#runSingle((pool) => storeJobAlert(pool, job, alert));
  }

  /** Writes the status of a subscription at most once in two seconds. */
  noteStatus(status: SubscriptionStatus): void {
    this.#statuses.note(status);
  }

  close(): Promise<void> {
    return this.#statuses.close();
  }

  async #runSingle<Result>(run: (pool: Pool) => Promise<Result>): Promise<Result> {
    await this.#singleStatements.acquire();
    try {
      return await retryWhileUnavailable(this.#options, () => run(this.#options.pool));
    } finally {
      this.#singleStatements.release();
    }
  }
}
