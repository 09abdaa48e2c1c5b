import type { DeliveryPayload } from '@runhook/contract';
import type { JobView } from '@runhook/database';
import type { AttemptView, DeliveryView } from '../../deliveries/delivery.ts';
import type { RecoveryView } from '../../deliveries/recover.ts';
import type { StatisticsView } from '../../deliveries/statistics.ts';
import type { RunView } from '../../runs/routes.ts';
import type { SubscriptionView } from '../../subscriptions/statements.ts';

/** One story for every example: a nightly job of account 1 fails, and a webhook tells the pager. */

const SUBSCRIPTION_ID = 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn';
const EVENT_ID = 'wev_3MMmRDA51yZpHdvPtc0ABzoUBAh';
const SECONDS_BEFORE = '2026-11-20T09:58:26Z';
const SECONDS_AT = '2026-11-20T10:00:00Z';

export const SUBSCRIPTION_FIELDS_EXAMPLE = {
  name: 'Runs to the pager',
  description: 'Wakes whoever is on call',
  event_types: ['job.run.completed', 'job.run.errored'],
  job_ids: [12],
  client_url: 'https://receiver.example.com/hooks',
  active: true,
};

const NEW_SUBSCRIPTION: SubscriptionView = {
  id: SUBSCRIPTION_ID,
  account_identifier: 'act_3MMmRJEV9dZkhAlajvBokYDUOPh',
  account_id: '1',
  name: 'Runs to the pager',
  description: 'Wakes whoever is on call',
  job_ids: ['12'],
  event_types: ['job.run.completed', 'job.run.errored'],
  client_url: 'https://receiver.example.com/hooks',
  active: true,
  created_at: '1795168700000000',
  updated_at: '1795168700000000',
  http_status_code: '0',
};

export const CREATED_SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...NEW_SUBSCRIPTION,
  hmac_secret: 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=',
};

export const SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...NEW_SUBSCRIPTION,
  dispatched_at: '1795168800123456',
  http_status_code: '200',
};

export const DELETED_EXAMPLE = { id: SUBSCRIPTION_ID };
export const VERIFICATION_EXAMPLE = { verification_error: null, verification_status_code: '200' };

export const JOB_EXAMPLE: JobView = {
  id: 12,
  account_id: 1,
  name: 'Nightly',
  project_id: 3,
  project_name: 'Analytics',
  environment_id: 4,
  environment_name: 'Production',
};

export const RUNNING_EXAMPLE: RunView = {
  id: 345,
  account_id: 1,
  job_id: 12,
  job_name: 'Nightly',
  project_id: 3,
  project_name: 'Analytics',
  environment_id: 4,
  environment_name: 'Production',
  engine_version: '1.9.0',
  status: 'Running',
  status_code: 3,
  status_message: null,
  reason: 'Scheduled',
  started_at: SECONDS_BEFORE,
  finished_at: null,
  errored_at: null,
  artifacts_ingested_at: null,
};

export const ERRORED_EXAMPLE: RunView = {
  ...RUNNING_EXAMPLE,
  status: 'Errored',
  status_code: 20,
  status_message: 'Two models failed',
  finished_at: SECONDS_AT,
  errored_at: SECONDS_AT,
};

export const INGESTED_EXAMPLE: RunView = {
  ...ERRORED_EXAMPLE,
  artifacts_ingested_at: '2026-11-20T10:00:05Z',
};

const identity = {
  accountId: 1,
  webhooksID: SUBSCRIPTION_ID,
  eventId: EVENT_ID,
  timestamp: '2026-11-20T10:00:00.123456000Z',
  webhookName: 'Runs to the pager',
};

const details = {
  jobId: '12',
  jobName: 'Nightly',
  runId: '345',
  environmentId: '4',
  environmentName: 'Production',
  engineVersion: '1.9.0',
  projectName: 'Analytics',
  projectId: '3',
  runStatus: 'Errored',
  runStatusCode: 20,
  runStatusMessage: 'Two models failed',
  runReason: 'Scheduled',
  runStartedAt: SECONDS_BEFORE,
};

export const PAYLOAD_EXAMPLES: Record<DeliveryPayload['eventType'], DeliveryPayload> = {
  'job.run.started': {
    ...identity,
    eventType: 'job.run.started',
    data: { ...details, runStatus: 'Running', runStatusCode: 3, runStatusMessage: 'None' },
  },
  'job.run.completed': {
    ...identity,
    eventType: 'job.run.completed',
    data: { ...details, runFinishedAt: SECONDS_AT },
  },
  'job.run.errored': {
    ...identity,
    eventType: 'job.run.errored',
    data: { ...details, runErroredAt: SECONDS_AT },
  },
};

export const DELIVERY_EXAMPLE: DeliveryView = {
  id: 'wdl_3MMmREvOSGeIvAOczCddVh2Ios8',
  subscription_id: SUBSCRIPTION_ID,
  event_id: EVENT_ID,
  event_type: 'job.run.errored',
  job_id: '12',
  job_name: 'Nightly',
  run_id: '345',
  status: 'delivered',
  reason: null,
  attempt_count: 1,
  http_status_code: '200',
  created_at: '1795168800100000',
  completed_at: '1795168800223456',
  next_attempt_at: null,
  duration_ms: 100,
};

export const PENDING_DELIVERY_EXAMPLE: DeliveryView = {
  ...DELIVERY_EXAMPLE,
  status: 'pending',
  completed_at: null,
  next_attempt_at: '1795169000000000',
};

const ATTEMPT_EXAMPLE: AttemptView = {
  number: 1,
  trigger: 'automatic',
  started_at: '1795168800123456',
  duration_ms: 100,
  http_status_code: '200',
  error: null,
  request_headers: { 'content-type': 'application/json', authorization: '***' },
  response_headers: { 'content-type': 'text/plain' },
  response_body: 'thanks',
  response_truncated: false,
  timings: { dns_ms: 4, connect_ms: 21, tls_ms: 27, first_byte_ms: 46, total_ms: 99 },
};

export const DELIVERY_WITH_ATTEMPTS_EXAMPLE = {
  ...DELIVERY_EXAMPLE,
  payload: JSON.stringify(PAYLOAD_EXAMPLES['job.run.errored']),
  attempts: [ATTEMPT_EXAMPLE],
};

const STATISTICS_COUNTS = {
  delivered_count: 41,
  failed_count: 1,
  pending_count: 0,
  cancelled_count: 0,
  attempt_count: 47,
  p50_ms: 95,
  p95_ms: 480,
};

export const STATISTICS_EXAMPLE: StatisticsView = {
  since: '1795168800000000',
  until: '1795170600000000',
  totals: STATISTICS_COUNTS,
  buckets: [{ hour_start: '1795168800000000', ...STATISTICS_COUNTS }],
};

export const RECOVERY_REQUEST_EXAMPLE = { since: '2026-11-20T10:00:00Z', status: 'failed' };

export const RECOVERY_EXAMPLE: RecoveryView = {
  id: 'wrc_3MMmREvOSGeIvAOczCddVh2Ios8',
  subscription_id: SUBSCRIPTION_ID,
  status: 'running',
  reason: null,
  since: '1795168800000000',
  until: '1795172400000000',
  delivery_status: 'failed',
  total_count: 250,
  recovered_count: 0,
  created_at: '1795172400000000',
  completed_at: null,
};

export const DONE_RECOVERY_EXAMPLE: RecoveryView = {
  ...RECOVERY_EXAMPLE,
  status: 'done',
  recovered_count: 250,
  completed_at: '1795172406000000',
};
