import { idDay, type JobRunEvent } from '@runhook/contract';
import { runStatement } from '@runhook/database';
import type pg from 'pg';

export interface FanOutRows {
  event: JobRunEvent;
  deliveries: { id: string; subscriptionId: string; webhookName: string }[];
}

/**
 * Claims each event and commits it with its deliveries, in one statement. An event is claimed once: whoever comes
 * second with the same id adds nothing, whether it was published twice, relayed twice, or its job was interrupted.
 * Management has committed the rows of its own events before, unclaimed.
 */
const COMMIT_FAN_OUT = `
  WITH claimed AS (
    INSERT INTO events AS e (day, id, account_id, event_type, "timestamp", data, fanned_out_at)
    SELECT i.day, i.id, i.account_id, i.event_type, i."timestamp", i.data, now()
    FROM unnest($1::date[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::json[])
      AS i (day, id, account_id, event_type, "timestamp", data)
    ON CONFLICT (day, id) DO UPDATE
      SET fanned_out_at = EXCLUDED.fanned_out_at, account_id = EXCLUDED.account_id, event_type = EXCLUDED.event_type,
          "timestamp" = EXCLUDED."timestamp", data = EXCLUDED.data
      WHERE e.fanned_out_at IS NULL
    RETURNING e.day, e.id, e.account_id, e.event_type
  ), committed AS (
    INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id, webhook_name)
    SELECT c.day, d.id, c.account_id, d.subscription_id, c.id, c.event_type, d.job_id, d.run_id, d.webhook_name
    FROM unnest($7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::text[])
      AS d (event_id, id, subscription_id, job_id, run_id, webhook_name)
    JOIN claimed c ON c.id = d.event_id
  )
  SELECT id FROM claimed`;

/** Answers the ids of the events that this call claimed. Event ids must not repeat within a call. */
export async function commitFanOut(pool: pg.Pool, rows: readonly FanOutRows[]): Promise<Set<string>> {
  // The same order everywhere, so that two dispatchers with the same events wait for each other, not in a circle.
  const events = rows.map(({ event }) => event).sort((a, b) => (a.eventId < b.eventId ? -1 : 1));
  const deliveries = rows.flatMap(({ event, deliveries }) =>
    deliveries.map((delivery) => ({ event, ...delivery })),
  );
  const claimed = await runStatement<{ id: string }>(
    pool,
    COMMIT_FAN_OUT,
    [
      events.map(({ eventId }) => idDay('event', eventId)),
      events.map(({ eventId }) => eventId),
      events.map(({ accountId }) => accountId),
      events.map(({ eventType }) => eventType),
      events.map(({ timestamp }) => timestamp),
      events.map(({ data }) => JSON.stringify(data)),
      deliveries.map(({ event }) => event.eventId),
      deliveries.map(({ id }) => id),
      deliveries.map(({ subscriptionId }) => subscriptionId),
      deliveries.map(({ event }) => event.data.jobId),
      deliveries.map(({ event }) => event.data.runId),
      deliveries.map(({ webhookName }) => webhookName),
    ],
    'commit-fan-out',
  );
  return new Set(claimed.map(({ id }) => id));
}
