import { microsOf } from './micros.ts';

/** What `DeliveryRow` needs, from `deliveries d`, but the event's data. */
export const DELIVERY_COLUMNS = `
  d.id, d.subscription_id, d.event_id, d.event_type, d.job_id::text AS job_id, d.run_id::text AS run_id, d.status,
  d.reason, d.attempt_count, d.http_status_code, ${microsOf('d.created_at')} AS created_at,
  ${microsOf('d.completed_at')} AS completed_at, ${microsOf('d.next_attempt_at')} AS next_attempt_at, d.duration_ms`;
