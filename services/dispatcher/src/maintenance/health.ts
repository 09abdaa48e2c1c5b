import { type Queryable, runEach } from '@runhook/database';
import { ADMINS } from '../record/admins.ts';
import type { Quarantine } from '../record/quarantine.ts';
import { changeSubscriptions, type SubscriptionChange } from './change-subscriptions.ts';

export interface HealthOptions {
  quarantine: Pick<Quarantine, 'setAsideStatus'>;
  shouldNotifyAdmins: boolean;
  /** Consecutive failures that deactivate a subscription; with `deactivateAfterDays`, both limits must be reached. */
  deactivateAfterFailures?: number | undefined;
  /** Days from the first failure to the latest attempt that deactivate a subscription. */
  deactivateAfterDays?: number | undefined;
}

/** Numbers of subscriptions: deactivated; reported to the admins as failing for an hour; reported as recovered. */
export interface HealthPassResult {
  deactivated: number;
  notifiedFailing: number;
  notifiedRecovered: number;
}

/**
 * Deactivates subscriptions by the limits. With mail, the statement that deactivates a subscription, or marks it as
 * failing or recovered, writes a row of `notices` for each admin, so that concurrent checks write only one.
 */
export async function refreshHealth(database: Queryable, options: HealthOptions): Promise<HealthPassResult> {
  const {
    shouldNotifyAdmins,
    quarantine,
    deactivateAfterFailures = null,
    deactivateAfterDays = null,
  } = options;
  const change = (changed: SubscriptionChange) => changeSubscriptions(database, quarantine, changed);
  const isDeactivating = deactivateAfterFailures !== null || deactivateAfterDays !== null;
  const deactivate = deactivation([deactivateAfterFailures, deactivateAfterDays], shouldNotifyAdmins);
  return await runEach<HealthPassResult>({
    deactivated: async () => (isDeactivating ? await change(deactivate) : 0),
    notifiedFailing: async () => (shouldNotifyAdmins ? await change(NOTIFY_FAILING) : 0),
    notifiedRecovered: async () => (shouldNotifyAdmins ? await change(NOTIFY_RECOVERED) : 0),
  });
}

const IS_ACTIVE = 's.active AND s.deleted_at IS NULL';

// Admins are notified after one hour: the failure of a nightly job is then reported before the next night.
const NOTIFY_FAILING: SubscriptionChange = {
  name: 'notify-failing',
  condition: `${IS_ACTIVE} AND s.failing_since <= now() - interval '1 hour' AND s.failure_notified_at IS NULL`,
  values: [],
  statement: (ids) => `
    WITH changed AS (
      UPDATE subscriptions SET failure_notified_at = now() WHERE id IN (${ids})
      RETURNING id, account_id, failing_since, consecutive_failures
    ), notified AS (
      INSERT INTO notices (kind, subscription_id, email, occurred_at, failures)
      SELECT 'failing', changed.id, u.email, changed.failing_since, changed.consecutive_failures FROM changed ${ADMINS}
    )
    SELECT id FROM changed`,
};

// A subscription that has succeeded and fails again is reported as recovered, and after an hour as failing.
const NOTIFY_RECOVERED: SubscriptionChange = {
  name: 'notify-recovered',
  condition: `${IS_ACTIVE} AND s.failure_notified_at IS NOT NULL
    AND (s.failing_since IS NULL OR s.failing_since > s.failure_notified_at)`,
  values: [],
  statement: (ids) => `
    WITH changed AS (
      UPDATE subscriptions SET failure_notified_at = NULL WHERE id IN (${ids})
      RETURNING id, account_id, coalesce(last_success_at, now()) AS occurred_at
    ), notified AS (
      INSERT INTO notices (kind, subscription_id, email, occurred_at, failures)
      SELECT 'recovered', changed.id, u.email, changed.occurred_at, 0 FROM changed ${ADMINS}
    )
    SELECT id FROM changed`,
};

/**
 * Days count from attempt to attempt: one failure without later attempts is not a week of failures. They start again
 * after a block by Retry-After.
 */
const deactivation = (limits: (number | null)[], shouldNotifyAdmins: boolean): SubscriptionChange => ({
  name: shouldNotifyAdmins ? 'deactivate-failing-and-notify' : 'deactivate-failing',
  condition: `${IS_ACTIVE} AND s.failing_since IS NOT NULL
    AND s.consecutive_failures >= coalesce($2::int, 1)
    AND ($3::int IS NULL OR s.dispatched_at >= greatest(s.failing_since, s.blocked_until) + $3 * interval '1 day')`,
  values: limits,
  statement: (ids) => `
    WITH changed AS (
      UPDATE subscriptions SET active = false, failure_notified_at = NULL,
        deactivate_reason = format('Its endpoint failed %s times in a row since %s.', consecutive_failures,
          to_char(failing_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      WHERE id IN (${ids})
      RETURNING id, account_id, failing_since, consecutive_failures
    ), notified AS (
      INSERT INTO notices (kind, subscription_id, email, occurred_at, failures)
      SELECT 'deactivated', changed.id, u.email, changed.failing_since, changed.consecutive_failures
      FROM changed ${ADMINS}
      WHERE ${shouldNotifyAdmins}
    )
    SELECT id FROM changed`,
});
