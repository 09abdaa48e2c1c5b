import type { Pool } from '@runhook/database';
import type { EventQueue } from '@runhook/queue';
import type { Traces } from '@runhook/runtime';
import { type BatchOutcome, moveBatch } from './move-batch.ts';
import { countOutbox } from './outbox.ts';
import { createPause } from './pause.ts';

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
}

/** Moves committed events to the queue, in order. Any number of processes may run one; they take turns. */
export interface Relay {
  /** Events were committed: look now. Cheap, never throws. */
  wake(): void;
  /** Ends after the batch in hand; resolves when nothing of the relay runs any more. */
  stop(): Promise<void>;
  /** Events that still wait. Throws when the database is away. */
  backlog(): Promise<number>;
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
  const pause = createPause();
  let stopped = false;
  let busyTurns = 0;
  let failures = 0;

  const doubled = (baseMs: number, times: number, maxMs: number) => Math.min(baseMs * 2 ** times, maxMs);

  function settled(outcome: BatchOutcome): Promise<void> {
    if (outcome.kind === 'busy') return pause.forMs(doubled(BUSY_WAIT_MS, busyTurns++, pollIntervalMs));
    busyTurns = 0;
    if (failures > 0) logger.info({ failures }, 'the relay moves events again');
    failures = 0;
    if (outcome.kind === 'empty') return pause.forMsOrWake(pollIntervalMs);
    onMoved?.(outcome);
    if (outcome.vanished > 0) {
      logger.warn({ vanished: outcome.vanished }, 'events left with retention before the queue took them');
    }
    return Promise.resolve();
  }

  function failed(error: unknown): Promise<void> {
    if (failures === 0) logger.error({ err: error }, 'the relay cannot move events; it keeps trying');
    return pause.forMs(doubled(OUTAGE_WAIT_MS, failures++, OUTAGE_WAIT_MAX_MS));
  }

  async function run(): Promise<void> {
    while (!stopped) {
      pause.forgetWake();
      await moveBatch(pool, events, traces).then(settled, failed);
    }
  }

  const running = run();
  return {
    wake: () => pause.wake(),
    stop: async () => {
      stopped = true;
      pause.end();
      await running;
    },
    backlog: () => countOutbox(pool),
  };
}
