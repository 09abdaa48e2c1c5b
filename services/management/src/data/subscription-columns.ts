import { microsOf } from './micros.ts';

/** What `SubscriptionRow` needs, from `subscriptions s JOIN accounts a`. */
export const SUBSCRIPTION_COLUMNS = `
  s.id, a.identifier AS account_identifier, s.account_id::text AS account_id, s.name, s.description,
  s.job_ids::text[] AS job_ids, s.event_types, s.client_url, s.active,
  ${microsOf('s.created_at')} AS created_at, ${microsOf('s.updated_at')} AS updated_at,
  ${microsOf('s.dispatched_at')} AS dispatched_at, s.http_status_code, s.deactivate_reason`;
