import type { EventType } from '@runhook/contract';

/** A subscription as the database has it; times are microseconds since the epoch, as digits. */
export interface SubscriptionRow {
  id: string;
  account_identifier: string;
  account_id: string;
  name: string;
  description: string;
  job_ids: string[];
  event_types: EventType[];
  client_url: string;
  active: boolean;
  created_at: string;
  updated_at: string;
  dispatched_at: string | null;
  http_status_code: number;
  deactivate_reason: string | null;
}

/** A subscription as the API answers it (spec, section 2.1). */
export interface SubscriptionView
  extends Omit<SubscriptionRow, 'dispatched_at' | 'http_status_code' | 'deactivate_reason'> {
  /** Absent until the first dispatch. */
  dispatched_at?: string;
  /** "0" before the first delivery. */
  http_status_code: string;
  /** Absent unless something other than a request made it inactive. */
  deactivate_reason?: string;
  /** In the answer to the create only. */
  hmac_secret?: string;
}

export function subscriptionView(row: SubscriptionRow): SubscriptionView {
  return {
    id: row.id,
    account_identifier: row.account_identifier,
    account_id: row.account_id,
    name: row.name,
    description: row.description,
    job_ids: row.job_ids,
    event_types: row.event_types,
    client_url: row.client_url,
    active: row.active,
    created_at: row.created_at,
    updated_at: row.updated_at,
    ...(row.dispatched_at === null ? {} : { dispatched_at: row.dispatched_at }),
    http_status_code: String(row.http_status_code),
    ...(row.deactivate_reason === null ? {} : { deactivate_reason: row.deactivate_reason }),
  };
}
