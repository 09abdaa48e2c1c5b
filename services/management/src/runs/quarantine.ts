import { addQuarantined, type Pool, type QuarantinedItem, rejectionReason } from '@runhook/database';
import type { Logger } from '@runhook/runtime';
import type { ManagementMetrics } from '../metrics.ts';
import type { RejectedEvent } from './relay.ts';

export interface QuarantineDependencies {
  pool: Pool;
  metrics: Pick<ManagementMetrics, 'quarantined'>;
  logger: Pick<Logger, 'error'>;
}

/** Sets aside committed events that the queue rejects for their data, each counted and logged once. */
export async function quarantineEvents(
  { pool, metrics, logger }: QuarantineDependencies,
  rejected: readonly RejectedEvent[],
): Promise<void> {
  const kinds = await addQuarantined(pool, rejected.map(quarantinedEvent));
  for (const kind of kinds) metrics.quarantined.inc({ kind });
  for (const { event, error } of rejected)
    logger.error({ err: error, eventId: event.eventId }, 'event set aside: the queue rejected its data');
}

/** Omits the data, which is on record: the reconciler queues the event when an operator releases it. */
function quarantinedEvent({ event, error }: RejectedEvent): QuarantinedItem {
  const { accountId, eventId: key } = event;
  return { kind: 'event', accountId, key, reason: rejectionReason(error) };
}
