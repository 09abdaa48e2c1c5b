import {
  type DeliveryJob,
  type EventKey,
  type JobRunEvent,
  type LaneJob,
  WEBHOOK_DELIVERIES,
} from '@runhook/contract';
import {
  isConversionRejection,
  isDatabaseRefusing,
  isItemFault,
  type Pool,
  type RecordWrites,
} from '@runhook/database';
import { type Logger, MicroBatcher, Semaphore } from '@runhook/runtime';
import type { Delivery, KnownSubscription } from '../policy/next-step.ts';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import {
  type AccountVersions,
  loadAccountVersions,
  loadSubscriptions,
  SubscriptionCache,
} from './accounts.ts';
import {
  type AttemptRecord,
  recordAttempts,
  type SubscriptionStatus,
  updateSubscriptionStatuses,
} from './attempts.ts';
import { type Block, type BlockChange, changeBlocks, claimProbe } from './blocks.ts';
import { type CommitOutcome, commitEach, commitEvents, type EventCommit } from './commit-events.ts';
import {
  accountOf,
  type Cancellation,
  cancelDeliveries,
  type DeliveryKey,
  loadDeliveries,
  type PendingDelivery,
  pendingDeliveriesOf,
} from './deliveries.ts';
import { type EventState, eventStates, loadEvents, type PlannedEvent } from './event-states.ts';
import { hasParked, type Lane, parkDeliveries, type TakeOptions, takeParked } from './parked.ts';
import type { Quarantine } from './quarantine.ts';
import { retryWhileUnavailable, type Waiting } from './retry-while-unavailable.ts';
import { StatusCoalescer } from './status-coalescer.ts';

const BATCH_SIZE_MAX = 200;
/**
 * The next batch waits for the one before: the busier the database, the larger the batches, and a statement of a hundred
 * rows costs little more than one of twenty.
 */
const BATCH_SLOTS = 1;
/** What an event waits for on its way to the endpoint is spaced less than what is written behind it. */
const SPACING_MS = {
  match: 2,
  look: 2,
  commit: 5,
  load: 5,
  park: 5,
  attempted: 15,
  record: 10,
  cancel: 10,
  block: 2,
};
/**
 * What has been sent is on record a moment later, with what else was sent meanwhile: the endpoint has it, and a commit for each costs
 * a quiet service more than the delivery. Not when there is enough, which a busy one always has.
 */
const SENT = { ms: 40, enough: 20 };
/** An account with a thousand webhooks of a thousand jobs each takes 10 MB; with the longest headers as well it takes 70 MB. */
const CACHED_BYTES_MAX = 96 * 1_024 * 1_024;
const STATUS_PERIOD_MS = 2_000;
/** Statements of one item each, at once: a thousand lanes that look for what is parked leave connections to the batches. */
const SINGLE_MAX = 3;
/** Deliveries of a page: beside events of others, whose statements it must not keep waiting, and without any. */
const PAGE_SIZE = { beside: 50, alone: 500 };
/** After so long without an event that is committed at once, pages are alone. */
const ALONE_AFTER_MS = 1_000;
const PAGE_REST_TIMES = 2;
/** Of a page that took long because the database was away. */
const PAGE_REST_MAX_MS = 100;

/** Kinds of writes, by the batcher that makes them; a read has none. */
const WRITE_KINDS: { [name in keyof typeof SPACING_MS]?: string } = {
  commit: 'events',
  attempted: 'events',
  record: 'attempts',
  park: 'parked deliveries',
  cancel: 'cancelled deliveries',
  block: 'blocks',
};

export interface DispatchRecordOptions {
  pool: Pool;
  /** Notes whether the writes were possible. */
  writes: Pick<RecordWrites, 'track'>;
  /** Ends the waits for a database that is away. */
  stopping: AbortSignal;
  /** Ends, later than `stopping`, the waits of results of attempts: a request whose result is not recorded is sent again. */
  drainEnd: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'batchSize' | 'jobFaults'>;
  logger: Logger;
  quarantine: Pick<Quarantine, 'setAsideStatus'>;
}

/**
 * PostgreSQL as the way of an event uses it: calls for one item each, put together into one statement for all that
 * arrive at about the same time, and tried again while the database is away.
 */
export class DispatchRecord {
  /** The accounts' subscriptions, from memory where they are known. */
  readonly accounts: SubscriptionCache;
  readonly #options: DispatchRecordOptions;
  readonly #accountLoads: MicroBatcher<number, AccountVersions | null>;
  readonly #subscriptionLoads: MicroBatcher<string, KnownSubscription | null>;
  readonly #states: MicroBatcher<PlannedEvent, EventState>;
  readonly #commits: MicroBatcher<EventCommit, CommitOutcome>;
  readonly #commitsAttempted: MicroBatcher<EventCommit, CommitOutcome>;
  readonly #pageTurn = new Semaphore(1);
  readonly #single = new Semaphore(SINGLE_MAX);
  #lastBesideMs = Number.NEGATIVE_INFINITY;
  #isRefused = false;
  readonly #loads: MicroBatcher<DeliveryKey, Delivery | null>;
  readonly #parkings: MicroBatcher<DeliveryKey, void>;
  readonly #attempts: MicroBatcher<AttemptRecord, void>;
  readonly #cancellations: MicroBatcher<Cancellation, void>;
  readonly #blocks: MicroBatcher<BlockChange, void>;
  readonly #statuses: StatusCoalescer;

  constructor(options: DispatchRecordOptions) {
    const { pool, writes, logger } = options;
    this.#options = options;
    this.#accountLoads = this.#batcher('match', (ids) => loadAccountVersions(pool, ids));
    this.#subscriptionLoads = this.#batcher('match', (ids) => loadSubscriptions(pool, ids));
    this.#states = this.#batcher('look', (events) => eventStates(pool, events));
    this.#commits = this.#batcher('commit', (commits) => commitEach(pool, commits));
    this.#loads = this.#batcher('load', (keys) => loadDeliveries(pool, keys));
    this.#parkings = this.#batcher<DeliveryKey, void>('park', async (keys) => {
      await parkDeliveries(pool, keys);
      return keys.map(() => undefined);
    });
    // A request cannot be taken back: what came of it is kept for as long as the database refuses it, whatever for.
    this.#commitsAttempted = this.#batcher(
      'attempted',
      async (commits) => {
        const outcomes = await commitEach(pool, commits);
        this.#isRefused = false;
        return outcomes;
      },
      (error) => {
        this.#isRefused = this.#outlastsRefusal(error);
        return this.#isRefused;
      },
      SENT,
    );
    this.#attempts = this.#batcher<AttemptRecord, void>(
      'record',
      async (records) => {
        await recordAttempts(pool, records);
        return records.map(() => undefined);
      },
      (error) => this.#outlastsRefusal(error),
      SENT,
    );
    this.#cancellations = this.#batcher<Cancellation, void>('cancel', async (cancellations) => {
      await cancelDeliveries(pool, cancellations);
      return cancellations.map(() => undefined);
    });
    this.#blocks = this.#batcher<BlockChange, void>('block', async (changes) => {
      await changeBlocks(pool, changes);
      return changes.map(() => undefined);
    });
    this.#statuses = new StatusCoalescer({
      write: (statuses) => writes.track('statuses', () => updateSubscriptionStatuses(pool, statuses)),
      periodMs: STATUS_PERIOD_MS,
      onError: (error) => logger.warn({ err: error }, 'subscription statuses wait for the next period'),
      onRejected: ({ subscriptionId }, error) => options.quarantine.setAsideStatus(subscriptionId, error),
    });
    this.accounts = new SubscriptionCache({
      loadVersions: (accountId) => this.#accountLoads.add(accountId),
      loadSubscription: (id) => this.#subscriptionLoads.add(id),
      bytesMax: CACHED_BYTES_MAX,
    });
  }

  /** Reads whether the event is on record and dispatched, and whether its account has the version of the plan. */
  stateOf(event: PlannedEvent): Promise<EventState> {
    return this.#states.add(event);
  }

  /** The event as it is on record; null when it is not. */
  async loadEvent(key: EventKey): Promise<JobRunEvent | null> {
    const [event] = await this.#singly((pool) => loadEvents(pool, [key]));
    return event ?? null;
  }

  /** Commits the event with its deliveries, if its account has the version that they were planned for. */
  commitEvent(commit: EventCommit): Promise<CommitOutcome> {
    this.#lastBesideMs = performance.now();
    return this.#commits.add(commit);
  }

  /** The database takes no commit of what was attempted, whatever for: nothing more is to be attempted before its commit. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** As `commitEvent`, for deliveries whose first attempts have been made or begun: retried while the database rejects it. */
  commitAttempted(commit: EventCommit): Promise<CommitOutcome> {
    this.#lastBesideMs = performance.now();
    return this.#whileConverting(() => this.#commitsAttempted.add(commit));
  }

  #arePagesAlone(): boolean {
    return performance.now() - this.#lastBesideMs > ALONE_AFTER_MS;
  }

  /**
   * Commits a page of the deliveries of an event with very many. Pages run one after another, and while other events are
   * committed, each is followed by a pause of twice its duration, so that an account with a thousand subscriptions does not
   * keep the database busy.
   * @param plan makes a page of the given size once it is its turn: an earlier plan would not be fresh any more
   */
  async commitPage(plan: (size: number) => EventCommit): Promise<CommitOutcome> {
    await this.#pageTurn.acquire();
    const startMs = performance.now();
    try {
      const commit = plan(this.#arePagesAlone() ? PAGE_SIZE.alone : PAGE_SIZE.beside);
      const { pool, writes } = this.#options;
      const [outcome] = await retryWhileUnavailable(this.#options, () =>
        writes.track('events', () => commitEvents(pool, [commit])),
      );
      return outcome as CommitOutcome;
    } finally {
      const restMs = Math.min(PAGE_REST_TIMES * (performance.now() - startMs), PAGE_REST_MAX_MS);
      if (this.#arePagesAlone()) this.#pageTurn.release();
      else setTimeout(() => this.#pageTurn.release(), restMs);
    }
  }

  /** What an interrupted job of the event left to do. */
  pendingDeliveriesOf(event: EventKey, attemptMs: number): Promise<PendingDelivery[]> {
    return this.#singly((pool) => pendingDeliveriesOf(pool, event, attemptMs));
  }

  /** Null when retention took it. */
  loadDelivery(key: DeliveryKey): Promise<Delivery | null> {
    return this.#loads.add(key);
  }

  /** Lets a delivery wait for its lane; resolves once its row says so. */
  park(key: DeliveryKey): Promise<void> {
    return this.#parkings.add(key);
  }

  /** The oldest parked deliveries of a lane, each for whoever asked alone. */
  takeParked(options: TakeOptions): Promise<Delivery[]> {
    return this.#singly((pool) => takeParked(pool, options));
  }

  hasParked(lane: Lane): Promise<boolean> {
    return this.#singly((pool) => hasParked(pool, lane));
  }

  /** Of a delivery or a lane whose job does not tell: the release before made it. Null when it is gone. */
  accountOf(job: DeliveryJob | LaneJob): Promise<number | null> {
    return this.#singly((pool) => accountOf(pool, job));
  }

  /** Resolves once the attempt is committed. */
  recordAttempt(attempt: AttemptRecord): Promise<void> {
    return this.#whileConverting(() => this.#attempts.add(attempt));
  }

  cancelDelivery(cancellation: Cancellation): Promise<void> {
    return this.#cancellations.add(cancellation);
  }

  /** Resolves once every dispatcher finds the block, or its end, on record. */
  changeBlock(change: BlockChange): Promise<void> {
    return this.#blocks.add(change);
  }

  claimProbe(subscriptionId: string): Promise<Block | null> {
    return this.#singly((pool) => claimProbe(pool, subscriptionId));
  }

  /** Written once in two seconds at most. */
  noteStatus(status: SubscriptionStatus): void {
    this.#statuses.note(status);
  }

  /** Writes the statuses that are left. */
  close(): Promise<void> {
    return this.#statuses.close();
  }

  async #singly<Result>(run: (pool: Pool) => Promise<Result>): Promise<Result> {
    await this.#single.acquire();
    try {
      return await retryWhileUnavailable(this.#options, () => run(this.#options.pool));
    } finally {
      this.#single.release();
    }
  }

  /** Retries what has been sent already while the default partition of its day is converted. */
  #whileConverting<Result>(record: () => Promise<Result>): Promise<Result> {
    const { drainEnd: stopping } = this.#options;
    return retryWhileUnavailable({ ...this.#options, stopping, outlasts: isConversionRejection }, record);
  }

  #outlastsRefusal(error: unknown): boolean {
    if (!isDatabaseRefusing(error)) return false;
    this.#options.metrics.jobFaults[WEBHOOK_DELIVERIES].inc();
    return true;
  }

  #batcher<Item, Result>(
    name: keyof typeof SPACING_MS,
    run: (items: Item[]) => Promise<Result[]>,
    outlasts: Waiting['outlasts'] = () => false,
    gather?: { ms: number; enough: number },
  ): MicroBatcher<Item, Result> {
    const { stopping, drainEnd, writes } = this.#options;
    const kind = WRITE_KINDS[name];
    const tracked = (items: Item[]) =>
      kind === undefined ? run(items) : writes.track(kind, () => run(items));
    // The batchers that gather items record results of requests.
    const waiting = { ...this.#options, outlasts, stopping: gather ? drainEnd : stopping };
    return new MicroBatcher({
      run: (items) => retryWhileUnavailable(waiting, () => tracked(items)),
      sizeMax: BATCH_SIZE_MAX,
      slots: BATCH_SLOTS,
      spacingMs: SPACING_MS[name],
      ...(gather && { gather }),
      isItemFault,
      onBatch: this.#options.metrics.batchSize[name],
    });
  }
}
