import type { EventType } from '@runhook/contract';

// What the API answers, as /openapi.json describes it. Times are microseconds since the epoch, as digits, unless stated.

export interface Page {
  pagination: { total_count: number; count: number };
  filters: { offset: number; limit: number };
}

export interface Account {
  id: number;
  identifier: string;
  name: string;
  plan: 'free' | 'developer' | 'team' | 'enterprise';
  deployment: 'multi_tenant' | 'single_tenant_public_cloud' | 'single_tenant_private';
  license: 'developer' | 'read_only' | 'it';
  permission_sets: string[];
  webhooks_unavailable: 'plan' | 'deployment' | null;
  may_write_webhooks: boolean;
}

export interface Session {
  user_id: number;
  email: string;
  name: string;
  accounts: Account[];
  /** ISO 8601. */
  expires_at: string | null;
}

export interface Profile {
  user_id: number;
  email: string;
  name: string;
  api_key: string;
}

/** Spec, section 2.1. */
export interface Subscription {
  id: string;
  account_identifier: string;
  account_id: string;
  name: string;
  description: string;
  /** Empty: all jobs. */
  job_ids: string[];
  event_types: EventType[];
  client_url: string;
  active: boolean;
  created_at: string;
  updated_at: string;
  dispatched_at?: string;
  /** "0" before the first delivery. */
  http_status_code: string;
  deactivate_reason?: string;
}

export interface CreatedSubscription extends Subscription {
  hmac_secret: string;
}

export interface SubscriptionRequest {
  name: string;
  description: string;
  event_types: EventType[];
  job_ids: number[];
  client_url: string;
  active: boolean;
}

export interface Job {
  id: number;
  name: string;
  project_name: string;
  environment_name: string;
}

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'cancelled';

export interface Delivery {
  id: string;
  subscription_id: string;
  event_id: string;
  event_type: EventType;
  job_id: string;
  job_name: string;
  run_id: string;
  status: DeliveryStatus;
  reason: string | null;
  attempt_count: number;
  http_status_code: string;
  created_at: string;
  completed_at: string | null;
  next_attempt_at: string | null;
  duration_ms: number | null;
}

export interface Attempt {
  number: number;
  trigger: 'automatic' | 'manual';
  started_at: string;
  duration_ms: number;
  http_status_code: string;
  error: { code: string; message: string } | null;
  request_headers: Record<string, string>;
  response_headers: Record<string, string> | null;
  response_body: string | null;
  response_truncated: boolean;
}

export interface DeliveryDetail extends Delivery {
  /** The exact body; null when retention has just taken the event. */
  payload: string | null;
  attempts: Attempt[];
}

export interface Recovery {
  id: string;
  status: 'running' | 'done' | 'cancelled';
  reason: string | null;
  since: string;
  until: string;
  delivery_status: 'failed' | 'cancelled';
  total_count: number;
  recovered_count: number;
}

/** Of the test endpoint (spec, section 4.5). */
export interface Verification {
  verification_error: string | null;
  verification_status_code: string;
}
