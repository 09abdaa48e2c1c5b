import { JOB_RUN_EVENTS } from '@runhook/contract';
import { inTransaction, type Pool } from '@runhook/database';
import type { EventQueue } from '@runhook/queue';
import type { Traces } from '@runhook/runtime';
import { deleteFromOutbox, type OutboxRow, readOutbox, takeRelayTurn } from './outbox.ts';

/** One bulk call of the queue. */
const BATCH_SIZE = 500;

/** `busy`: another relay is moving events now. `vanished` events were removed by retention before they were sent. */
export type BatchOutcome =
  | { kind: 'busy' }
  | { kind: 'empty' }
  | { kind: 'moved'; sent: number; vanished: number };

/**
 * Moves the oldest events from the outbox to the queue, in order. The rows go only after the queue took them, and
 * while the turn is held: what is known to be sent is not sent again. A crash in between sends again under the same
 * ids, which the fan-out recognises. Throws when the database or the queue is away.
 */
export async function moveBatch(
  pool: Pool,
  queue: Pick<EventQueue, 'add'>,
  traces: Traces | null = null,
): Promise<BatchOutcome> {
  return await inTransaction(pool, async (transaction) => {
    if (!(await takeRelayTurn(transaction))) return { kind: 'busy' };
    const rows = await readOutbox(transaction, BATCH_SIZE);
    if (rows.length === 0) return { kind: 'empty' };
    const events = rows.flatMap(({ event }) => event ?? []);
    if (events.length > 0) await (traces ? addTraced(queue, rows, traces) : queue.add(events));
    await deleteFromOutbox(
      transaction,
      rows.map(({ sequence }) => sequence),
    );
    return { kind: 'moved', sent: events.length, vanished: rows.length - events.length };
  });
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
