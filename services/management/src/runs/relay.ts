// SQL by hand: the hot path; a batch is moved in one transaction with the lock of the relay.
import { JOB_RUN_EVENTS } from '@runhook/contract';
import { inTransaction, type Pool, type Transaction } from '@runhook/database';
import type { EventQueue } from '@runhook/queue';
import type { Traces } from '@runhook/runtime';
import { countOutbox, deleteFromOutbox, type OutboxRow, readOutbox, tryRelayLock } from './outbox.ts';
import { OutboxBound } from './outbox-bound.ts';

const BUSY_WAIT_MS = 20;
const OUTAGE_WAIT_MS = 100;
const OUTAGE_WAIT_MAX_MS = 5_000;

export interface RelayOptions {
  pool: Pool;
  events: Pick<EventQueue, 'add'>;
  logger: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
  /** How often the outbox is looked at when nothing wakes the relay; 1,000 when omitted. */
  pollIntervalMs?: number;
  /** Null or omitted while no traces are exported. */
  traces?: Traces | null;
  /** Told of every batch that left the outbox. */
  onMoved?: (batch: { sent: number; vanished: number }) => void;
  /** Milliseconds that only grow. */
  nowMs?: () => number;
}

/** Moves committed events to the queue, in order. Any number of processes may run one; a lock lets one of them move events at a time. */
export interface Relay {
  /** Events were committed: look now. Cheap, never throws. */
  wake(): void;
  /** Ends after the batch that is under way; resolves when nothing of the relay runs any more. */
  stop(): Promise<void>;
  /** Events that still wait. Throws when the database is away. */
  backlog(): Promise<number>;
  /** Up to this sequence the outbox is empty, and stays so. */
  readonly emptyUpTo: bigint;
}

/**
 * Starts at once. What decides the wait after each batch:
 * - moved: none, more may have come meanwhile
 * - empty: the poll interval, or until `wake`
 * - busy: 20 ms, doubled up to the poll interval; not shortened by `wake`, because the other relay may have read
 *   before this process committed, and asking at every commit would only hold it up
 * - an error: 100 ms, doubled up to 5 s; not shortened by `wake`
 */
export function createRelay(options: RelayOptions): Relay {
  const { pool, events, logger, pollIntervalMs = 1_000, traces = null, onMoved } = options;
  const { nowMs = () => performance.now() } = options;
  const bound = new OutboxBound(nowMs());
  const sleep = createSleep();
  let stopped = false;
  let busyBatches = 0;
  let failures = 0;

  const doubled = (baseMs: number, times: number, maxMs: number) => Math.min(baseMs * 2 ** times, maxMs);

  function settled(outcome: BatchOutcome): Promise<void> {
    if (outcome.kind === 'busy') return sleep.forMs(doubled(BUSY_WAIT_MS, busyBatches++, pollIntervalMs));
    busyBatches = 0;
    if (failures > 0) logger.info({ failures }, 'the relay moves events again');
    failures = 0;
    if (outcome.kind === 'empty') return sleep.forMsOrWake(pollIntervalMs);
    onMoved?.(outcome);
    if (outcome.vanished > 0) {
      logger.warn({ vanished: outcome.vanished }, 'events left with retention before the queue took them');
    }
    return Promise.resolve();
  }

  function failed(error: unknown): Promise<void> {
    if (failures === 0) logger.error({ err: error }, 'the relay cannot move events; it keeps trying');
    return sleep.forMs(doubled(OUTAGE_WAIT_MS, failures++, OUTAGE_WAIT_MAX_MS));
  }

  async function run(): Promise<void> {
    while (!stopped) {
      sleep.forgetWake();
      await moveBatch({ pool, queue: events, traces, bound, nowMs }).then(settled, failed);
    }
  }

  const running = run();
  return {
    wake: () => sleep.wake(),
    stop: async () => {
      stopped = true;
      sleep.end();
      await running;
    },
    backlog: () => countOutbox(pool),
    get emptyUpTo() {
      return bound.value;
    },
  };
}

/** One bulk call of the queue. */
const BATCH_SIZE = 500;

/** `busy`: another relay is moving events now. `vanished` events were removed by retention before they were sent. */
export type BatchOutcome =
  | { kind: 'busy' }
  | { kind: 'empty' }
  | { kind: 'moved'; sent: number; vanished: number };

/**
 * Moves the oldest events from the outbox to the queue, in order. The rows go only after the queue took them, and
 * while the lock is held: what is known to be sent is not sent again. A crash in between sends again under the same
 * ids, which the fan-out recognises. Throws when the database or the queue is away.
 */
async function moveBatch({ pool, bound, nowMs, ...goal }: Moving): Promise<BatchOutcome> {
  const turn = await inTransaction(pool, async (transaction) => {
    const edges = await tryRelayLock(transaction);
    if (!edges) return null;
    const after = bound.begin(edges, nowMs());
    const rows = await readOutbox(transaction, after, BATCH_SIZE);
    const [first, last] = [rows[0], rows.at(-1)];
    const moved = first && last ? { first: BigInt(first.sequence), last: BigInt(last.sequence) } : null;
    const sent = moved ? await sendAndDelete(transaction, rows, goal) : 0;
    return { after, moved, isAll: rows.length < BATCH_SIZE, sent, vanished: rows.length - sent };
  });
  if (!turn) return { kind: 'busy' };
  // Only what is committed is gone.
  bound.end(turn, nowMs());
  const { moved, sent, vanished } = turn;
  return moved ? { kind: 'moved', sent, vanished } : { kind: 'empty' };
}

/** What a batch is moved with. */
interface Moving {
  pool: Pool;
  queue: Pick<EventQueue, 'add'>;
  traces: Traces | null;
  bound: OutboxBound;
  nowMs: () => number;
}

/** Answers how many the queue took. */
async function sendAndDelete(
  transaction: Transaction,
  rows: readonly OutboxRow[],
  { queue, traces }: Pick<Moving, 'queue' | 'traces'>,
): Promise<number> {
  const events = rows.flatMap(({ event }) => event ?? []);
  if (events.length > 0) await (traces ? addTraced(queue, rows, traces) : queue.add(events));
  await deleteFromOutbox(
    transaction,
    rows.map(({ sequence }) => sequence),
  );
  return events.length;
}

/** Each event goes on in the trace of the call that caused it, whatever it travels with. */
async function addTraced(
  queue: Pick<EventQueue, 'add'>,
  rows: readonly OutboxRow[],
  traces: Traces,
): Promise<void> {
  const relayed = rows.flatMap(({ event, traceContext }) => {
    if (!event) return [];
    const attributes = { 'runhook.event.id': event.eventId, 'messaging.destination.name': JOB_RUN_EVENTS };
    return [{ event, span: traces.start('relay', { kind: 'producer', parent: traceContext, attributes }) }];
  });
  try {
    await queue.add(
      relayed.map(({ event }) => event),
      relayed.map(({ span }) => span.run(() => traces.carried())),
    );
  } catch (error) {
    for (const { span } of relayed) span.fail('queue_unavailable');
    throw error;
  } finally {
    for (const { span } of relayed) span.end();
  }
}

/**
 * The waiting of a loop. `wake` ends a sleep that may be woken, and counts for the next one when it comes between
 * two; `end` ends every sleep for good.
 */
export interface Sleep {
  forMs(waitMs: number): Promise<void>;
  forMsOrWake(waitMs: number): Promise<void>;
  wake(): void;
  /** Wakes up to now are answered by the work that follows. */
  forgetWake(): void;
  end(): void;
}

function createSleep(): Sleep {
  let woken = false;
  let ended = false;
  let current: { wakeable: boolean; finish: () => void } | undefined;

  function sleep(waitMs: number, wakeable: boolean): Promise<void> {
    if (ended || (wakeable && woken)) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = () => {
        clearTimeout(timer);
        current = undefined;
        resolve();
      };
      const timer = setTimeout(finish, waitMs);
      current = { wakeable, finish };
    });
  }

  return {
    forMs: (waitMs) => sleep(waitMs, false),
    forMsOrWake: (waitMs) => sleep(waitMs, true),
    wake() {
      woken = true;
      if (current?.wakeable) current.finish();
    },
    forgetWake() {
      woken = false;
    },
    end() {
      ended = true;
      current?.finish();
    },
  };
}
