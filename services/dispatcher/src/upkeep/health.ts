import { type Queryable, runEach } from '@runhook/database';
import type { Quarantine } from '../record/quarantine.ts';
import { changeSubscriptions, type SubscriptionChange } from './change-subscriptions.ts';

export interface HealthOptions {
  quarantine: Pick<Quarantine, 'setAsideStatus'>;
  /** Whether the admins of the account are told. */
  areAdminsTold: boolean;
  /** Subscriptions that fail so often in a row are made inactive; with `deactivateAfterDays`, both must be so. */
  deactivateAfterFailures?: number | undefined;
  /** That fail for so long, the latest attempt included. */
  deactivateAfterDays?: number | undefined;
}

/** Subscriptions, by what became of them. */
export interface HealthTurn {
  deactivated: number;
  failing: number;
  recovered: number;
}

/**
 * Looks at the subscriptions that fail, or do not any more. Each admin is told by a row of `notices`, written in the
 * statement that notes that they are: however many look at the same time, there is one.
 */
export async function lookAfterHealth(database: Queryable, options: HealthOptions): Promise<HealthTurn> {
  const { areAdminsTold, quarantine, deactivateAfterFailures = null, deactivateAfterDays = null } = options;
  const change = (changed: SubscriptionChange) => changeSubscriptions(database, quarantine, changed);
  const isDeactivating = deactivateAfterFailures !== null || deactivateAfterDays !== null;
  const deactivate = deactivation([deactivateAfterFailures, deactivateAfterDays], areAdminsTold);
  return await runEach<HealthTurn>({
    deactivated: async () => (isDeactivating ? await change(deactivate) : 0),
    failing: async () => (areAdminsTold ? await change(TELL_FAILING) : 0),
    recovered: async () => (areAdminsTold ? await change(TELL_RECOVERED) : 0),
  });
}

/** Those who administer the account of `changed`, whatever its plan. */
const ADMINS = `
  JOIN memberships m ON m.account_id = changed.account_id AND m.permission_sets && '{account_admin,admin}'
  JOIN users u ON u.id = m.user_id`;

const LIVE = 's.active AND s.deleted_at IS NULL';

// An hour by the clock: an endpoint that fails for a nightly job is told of before the next night.
const TELL_FAILING: SubscriptionChange = {
  name: 'tell-failing',
  condition: `${LIVE} AND s.failing_since <= now() - interval '1 hour' AND s.failure_told_at IS NULL`,
  values: [],
  statement: (ids) => `
    WITH changed AS (
      UPDATE subscriptions SET failure_told_at = now() WHERE id IN (${ids})
      RETURNING id, account_id, failing_since, consecutive_failures
    ), told AS (
      INSERT INTO notices (kind, subscription_id, email, moment, failures)
      SELECT 'failing', changed.id, u.email, changed.failing_since, changed.consecutive_failures FROM changed ${ADMINS}
    )
    SELECT id FROM changed`,
};

// One that has succeeded and fails again is told of as both, each in its turn.
const TELL_RECOVERED: SubscriptionChange = {
  name: 'tell-recovered',
  condition: `${LIVE} AND s.failure_told_at IS NOT NULL
    AND (s.failing_since IS NULL OR s.failing_since > s.failure_told_at)`,
  values: [],
  statement: (ids) => `
    WITH changed AS (
      UPDATE subscriptions SET failure_told_at = NULL WHERE id IN (${ids})
      RETURNING id, account_id, coalesce(last_success_at, now()) AS moment
    ), told AS (
      INSERT INTO notices (kind, subscription_id, email, moment, failures)
      SELECT 'recovered', changed.id, u.email, changed.moment, 0 FROM changed ${ADMINS}
    )
    SELECT id FROM changed`,
};

/**
 * Days count from attempt to attempt: one failure, and nothing to send since, is no week of failures. They begin again after a block by
 * Retry-After.
 */
const deactivation = (limits: (number | null)[], areAdminsTold: boolean): SubscriptionChange => ({
  name: areAdminsTold ? 'deactivate-failing-and-tell' : 'deactivate-failing',
  condition: `${LIVE} AND s.failing_since IS NOT NULL
    AND s.consecutive_failures >= coalesce($2::int, 1)
    AND ($3::int IS NULL OR s.dispatched_at >= greatest(s.failing_since, s.blocked_until) + $3 * interval '1 day')`,
  values: limits,
  statement: (ids) => `
    WITH changed AS (
      UPDATE subscriptions SET active = false, failure_told_at = NULL,
        deactivate_reason = format('Its endpoint failed %s times in a row since %s.', consecutive_failures,
          to_char(failing_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      WHERE id IN (${ids})
      RETURNING id, account_id, failing_since, consecutive_failures
    ), told AS (
      INSERT INTO notices (kind, subscription_id, email, moment, failures)
      SELECT 'deactivated', changed.id, u.email, changed.failing_since, changed.consecutive_failures
      FROM changed ${ADMINS}
      WHERE ${areAdminsTold}
    )
    SELECT id FROM changed`,
});
