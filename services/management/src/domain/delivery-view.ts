export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** A delivery as the database has it, with its event's data; times are microseconds since the epoch, as digits. */
export interface DeliveryRow {
  id: string;
  subscription_id: string;
  event_id: string;
  event_type: string;
  job_id: string;
  run_id: string;
  status: DeliveryStatus;
  reason: string | null;
  attempt_count: number;
  http_status_code: number;
  created_at: string;
  completed_at: string | null;
  next_attempt_at: string | null;
  duration_ms: number | null;
  /** Null when the event is gone, which its retention does a moment before or after the delivery's. */
  event_data: { jobName: string } | null;
}

/** A delivery as the log answers it (DESIGN, section 7, "Deliveries"). */
export interface DeliveryView extends Omit<DeliveryRow, 'http_status_code' | 'event_data'> {
  job_name: string;
  http_status_code: string;
}

export function deliveryView(row: DeliveryRow): DeliveryView {
  return {
    id: row.id,
    subscription_id: row.subscription_id,
    event_id: row.event_id,
    event_type: row.event_type,
    job_id: row.job_id,
    job_name: row.event_data?.jobName ?? '',
    run_id: row.run_id,
    status: row.status,
    reason: row.reason,
    attempt_count: row.attempt_count,
    http_status_code: String(row.http_status_code),
    created_at: row.created_at,
    completed_at: row.completed_at,
    next_attempt_at: row.next_attempt_at,
    duration_ms: row.duration_ms,
  };
}
