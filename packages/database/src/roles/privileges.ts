/** A service with a separate database role. */
export type ServiceName = 'management' | 'dispatcher';

/** Privileges on a table, as in GRANT; a service that is missing has none. */
export type TablePrivileges = Readonly<Partial<Record<ServiceName, string>>>;

/** Columns of a subscription that dispatchers change. They change no address, headers or event types. */
const SUBSCRIPTION_COLUMNS_OF_DISPATCHERS = [
  'active',
  'blocked_until',
  'consecutive_failures',
  'deactivate_reason',
  'dispatched_at',
  'error_code',
  'failing_since',
  'failure_notified_at',
  'hmac_secret_ciphertext',
  'http_status_code',
  'lane_full_since',
  'last_success_at',
  'next_hmac_secret_ciphertext',
  'next_signature_key_ciphertext',
  'next_signature_public_key',
  'probe_at',
  'rotation_ends_at',
  'rotation_started_at',
  'signature_key_ciphertext',
  'signature_public_key',
];

/**
 * Columns of a delivery that services change. The day is not among them: it would move the delivery into a partition from
 * which rows may be deleted.
 */
const CHANGED_COLUMNS_OF_DELIVERIES = [
  'attempt_count',
  'completed_at',
  'connect_ms',
  'cycle',
  'deferred_at',
  'dns_ms',
  'duration_ms',
  'error_code',
  'first_byte_ms',
  'format',
  'http_status_code',
  'next_attempt_at',
  'out_of_order',
  'reason',
  'recovery_id',
  'request_headers',
  'response_body',
  'response_headers',
  'response_truncated',
  'started_at',
  'status',
  'tls_ms',
  'total_ms',
  'trigger',
  'waits_for_event_id',
  'waits_for_event_type',
].join(', ');

/**
 * Privileges that the statements of each service and the triggers that they fire need. Every table and view of the schema is listed,
 * except for the day partitions, which are accessed through their parents. A row lock needs UPDATE on one column.
 */
export const TABLE_PRIVILEGES: Readonly<Record<string, TablePrivileges>> = {
  _prisma_migrations: { management: 'SELECT', dispatcher: 'SELECT' },
  accounts: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, UPDATE (version)' },
  artifact_contents: { management: 'SELECT, INSERT, DELETE', dispatcher: 'SELECT, DELETE' },
  artifacts: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, DELETE' },
  attempts: { management: 'SELECT, INSERT', dispatcher: 'SELECT, INSERT' },
  attempts_default: { dispatcher: 'SELECT, DELETE' },
  // A trigger rejects the deletion of entries that are younger than a year.
  audit_entries: { management: 'SELECT, INSERT', dispatcher: 'SELECT, INSERT, DELETE' },
  // A trigger advances the version when an unused job is deleted.
  cache_version: { management: 'SELECT, UPDATE', dispatcher: 'SELECT, UPDATE (version)' },
  console_sessions: { management: 'SELECT, INSERT, UPDATE, DELETE' },
  deliveries: {
    management: `SELECT, UPDATE (${CHANGED_COLUMNS_OF_DELIVERIES})`,
    dispatcher: `SELECT, INSERT, UPDATE (${CHANGED_COLUMNS_OF_DELIVERIES})`,
  },
  deliveries_default: { management: 'SELECT', dispatcher: 'SELECT, DELETE' },
  environments: { management: 'SELECT, INSERT, UPDATE' },
  events: { management: 'SELECT, INSERT', dispatcher: 'SELECT, INSERT' },
  events_default: { dispatcher: 'SELECT, DELETE' },
  feed_generations: { management: 'SELECT, INSERT, UPDATE (marked_position)' },
  idempotency_keys: {
    management: 'SELECT, INSERT, UPDATE, DELETE',
    dispatcher: 'SELECT (id, expires_at), UPDATE (expires_at), DELETE',
  },
  incidents: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, INSERT, UPDATE, DELETE' },
  jobs: {
    management:
      'SELECT, INSERT, UPDATE (name, project_id, environment_id, definition, updated_at, deleted_at)',
    dispatcher: 'SELECT, UPDATE (created_at), DELETE',
  },
  job_alerts: { dispatcher: 'SELECT, INSERT, UPDATE, DELETE' },
  log_retention: { management: 'SELECT', dispatcher: 'SELECT' },
  logged_attempts: { management: 'SELECT' },
  memberships: {
    management: 'SELECT, INSERT, UPDATE, DELETE',
    dispatcher: 'SELECT (account_id, user_id, license, permission_sets)',
  },
  notices: { dispatcher: 'SELECT, INSERT, UPDATE, DELETE' },
  oidc_identities: { management: 'SELECT, INSERT, UPDATE, DELETE' },
  projects: { management: 'SELECT, INSERT, UPDATE' },
  quarantined_items: {
    management: 'SELECT, INSERT, UPDATE, DELETE',
    dispatcher: 'SELECT, INSERT, UPDATE, DELETE',
  },
  // A foreign key deletes the bucket of a deleted subscription with the rights of the owner.
  rate_buckets: { management: 'SELECT', dispatcher: 'SELECT, INSERT, UPDATE' },
  rate_limits: { management: 'SELECT, INSERT, UPDATE, DELETE' },
  reconciler_cursors: { dispatcher: 'SELECT, INSERT, UPDATE, DELETE' },
  record_probe: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, INSERT, UPDATE' },
  recoveries: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, UPDATE, DELETE' },
  run_counters: { management: 'SELECT, INSERT, UPDATE' },
  run_requests: {
    management: 'SELECT, INSERT, UPDATE',
    dispatcher: 'SELECT, UPDATE (ended_at, enqueued_at), DELETE',
  },
  run_steps: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, INSERT, UPDATE, DELETE' },
  run_steps_usage: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, INSERT, UPDATE' },
  run_models: { management: 'SELECT, INSERT, DELETE', dispatcher: 'SELECT, DELETE' },
  runs: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, INSERT, UPDATE, DELETE' },
  // The trigger of the audit log names the actor of a change.
  service_tokens: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT (id, name)' },
  // The trigger of a deleted row reads memberships and users.
  sign_in_failures: { management: 'SELECT, INSERT, UPDATE', dispatcher: 'SELECT, UPDATE (count), DELETE' },
  subscriptions: {
    management: 'SELECT, INSERT, UPDATE',
    dispatcher: `SELECT, UPDATE (${SUBSCRIPTION_COLUMNS_OF_DISPATCHERS.join(', ')}), DELETE`,
  },
  undispatched_events: { management: 'SELECT, INSERT, DELETE', dispatcher: 'SELECT, INSERT, DELETE' },
  users: { management: 'SELECT, INSERT, UPDATE, DELETE', dispatcher: 'SELECT (id, email)' },
};

/** Functions of the owner that only dispatchers may execute; all others are executed with the rights of their caller. */
export const DISPATCHER_FUNCTIONS = [
  'make_day_partition(text, date)',
  'drop_day_partition(text, date)',
  'constrain_default_partition(text, date, date)',
  'validate_default_partition(text)',
  'swap_default_partition(text)',
];
