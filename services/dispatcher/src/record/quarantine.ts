import { hash } from 'node:crypto';
import { deliveryJobId, eventIdForJob, eventJobId, laneJobId } from '@runhook/contract';
import {
  addQuarantined,
  type Pool,
  type QuarantinedItem,
  rejectionReason,
  runStatement,
} from '@runhook/database';
import {
  type DeliveryQueue,
  type EventQueue,
  type IdentifiedEvent,
  JobsRejectedError,
  type QueuedDelivery,
  type WokenLane,
} from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** Reason why a message cannot be recorded under its id. */
export interface MessageRejection {
  kind: 'conflict' | 'out_of_range';
  reason: string;
}

export interface QuarantineOptions {
  pool: Pool;
  /** Ends the waits for an unavailable database. */
  stopping: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'quarantined'>;
  logger: Pick<Logger, 'warn' | 'error'>;
}

/**
 * Sets aside items that a store rejects for their data and events that cannot be recorded under their id, so that no
 * other item waits for them. Each is counted once and stays in `quarantined_items` until an operator releases it or the
 * retention of the log ends (docs/administration.md#items-that-were-set-aside).
 */
export class Quarantine {
  readonly #options: QuarantineOptions;

  constructor(options: QuarantineOptions) {
    this.#options = options;
  }

  /** Resolves once the items are on record as set aside. */
  async setAside(items: readonly QuarantinedItem[]): Promise<void> {
    const { pool, metrics, logger } = this.#options;
    const kinds = await retryWhileUnavailable(this.#options, () => addQuarantined(pool, items));
    for (const kind of kinds) metrics.quarantined[kind].inc();
    for (const { kind, accountId, key, reason } of items)
      logger.error({ kind, accountId, key, reason }, 'item set aside');
  }

  setAsideEvent(event: IdentifiedEvent, error: unknown): Promise<void> {
    const { accountId, eventId: key } = event;
    const reason = rejectionReason(error);
    return this.setAside([{ kind: 'event', accountId, key, reason, message: event }]);
  }

  /**
   * Sets aside an event that cannot be recorded under its id. Its message gets another id with the current time.
   * @param nowMs current time by the database's clock
   */
  setAsideMessage(rejection: MessageRejection, event: IdentifiedEvent, nowMs: number): Promise<void> {
    const { kind, reason } = rejection;
    const { accountId, eventId, eventType, data } = event;
    // Two messages with the same id and different data are two items, and two events once they are released.
    const dataHash = hash('sha256', JSON.stringify([eventType, data]), 'base64url').slice(0, 16);
    const key = `${eventId}-${dataHash}`;
    const message = { ...event, eventId: eventIdForJob(key, nowMs) };
    return this.setAside([{ kind, accountId, key, reason, message }]);
  }

  setAsideDelivery(delivery: { accountId: number; deliveryId: string }, error: unknown): Promise<void> {
    const { accountId, deliveryId: key } = delivery;
    return this.setAside([{ kind: 'delivery', accountId, key, reason: rejectionReason(error) }]);
  }

  /** Sets aside a subscription whose status the record rejects; the next attempt reports another status. */
  async setAsideStatus(subscriptionId: string, error: unknown): Promise<void> {
    const { pool } = this.#options;
    const [row] = await runStatement<{ account_id: string }>(pool, SELECT_ACCOUNT, [subscriptionId]);
    if (row === undefined) return;
    const accountId = Number(row.account_id);
    await this.setAside([{ kind: 'status', accountId, key: subscriptionId, reason: rejectionReason(error) }]);
  }
}

const SELECT_ACCOUNT = 'SELECT account_id FROM subscriptions WHERE id = $1';

/** Returns the same event queue, except that events that it rejects for their data are set aside and the call resolves. */
export function withEventQuarantine(events: EventQueue, quarantine: Quarantine): EventQueue {
  const setAside = (event: IdentifiedEvent, error: unknown) => quarantine.setAsideEvent(event, error);
  return {
    ...events,
    add: (added, traceContexts) =>
      addOrSetAside(added, eventJobId, setAside, () => events.add(added, traceContexts)),
    addEach: (added) => addOrSetAside(added, eventJobId, setAside, () => events.addEach(added)),
    requeue: (missing) => addOrSetAside(missing, eventJobId, setAside, () => events.requeue(missing)),
  };
}

/** Does the same as {@link withEventQuarantine} for deliveries and lanes. */
export function withDeliveryQuarantine(deliveries: DeliveryQueue, quarantine: Quarantine): DeliveryQueue {
  const setAside = (delivery: QueuedDelivery, error: unknown) => quarantine.setAsideDelivery(delivery, error);
  const setAsideLane = ({ accountId, subscriptionId: key }: WokenLane, error: unknown) =>
    quarantine.setAside([{ kind: 'lane', accountId, key, reason: rejectionReason(error) }]);
  return {
    ...deliveries,
    add: (added) => addOrSetAside(added, deliveryJobId, setAside, () => deliveries.add(added)),
    requeue: (missing) => addOrSetAside(missing, deliveryJobId, setAside, () => deliveries.requeue(missing)),
    wakeLanes: (lanes) => addOrSetAside(lanes, laneJobId, setAsideLane, () => deliveries.wakeLanes(lanes)),
    requeueLanes: (lanes) =>
      addOrSetAside(lanes, laneJobId, setAsideLane, () => deliveries.requeueLanes(lanes)),
  };
}

async function addOrSetAside<Item>(
  items: readonly Item[],
  jobIdOf: (item: Item) => string,
  setAside: (item: Item, error: unknown) => Promise<void>,
  add: () => Promise<void>,
): Promise<void> {
  try {
    await add();
  } catch (error) {
    if (!(error instanceof JobsRejectedError)) throw error;
    const errors = new Map(error.rejected.map(({ jobId, error }) => [jobId, error]));
    for (const item of items) {
      const jobId = jobIdOf(item);
      if (errors.has(jobId)) await setAside(item, errors.get(jobId));
    }
  }
}
