import { createId, isId, type Problem, problemsOf, VALIDATION_OPTIONS } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import Joi from 'joi';
import { type AccountEndpoint, READ_WEBHOOKS, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import { MOMENT_PROBLEM, microsFromText } from '../http/query-parameters.ts';
import { microsOf, timestampOf } from '../http/sql-text.ts';
import { RECOVER_PATH, RECOVERY_PATH, requiredSubscription } from './routes.ts';

const INACTIVE = 'The webhook is inactive: activate it to recover its deliveries.';
const CHANGING = 'The webhook or a recovery of it has just changed: try again.';
/** A recovery that was in the way may have ended by the time it is looked for. */
const TRIES_MAX = 3;

/**
 * Puts back what failed in a window, paced: the answer has the count at once, the dispatcher does the work, and
 * {@link getRecoveryEndpoint} tells how far it is.
 */
export function recoverEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'POST',
    path: RECOVER_PATH,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const subscription = await requiredSubscription(pool, request);
      const { fields, problems } = parseRecoveryRequest(request.body);
      if (problems) throw new InvalidRequestError(problems);
      if (!subscription.active) throw new ConflictError(INACTIVE);
      return { code: 202, data: await begin(pool, subscription.id, fields) };
    },
  };
}

async function begin(
  pool: Database['pool'],
  subscriptionId: string,
  { since, until, status }: RecoveryRequest,
): Promise<RecoveryView> {
  const recovery = { subscriptionId, since, until: until ?? null, deliveryStatus: status };
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const begun = await insertRecovery(pool, { id: createId('recovery'), ...recovery });
    if (begun) return begun;
    const running = await findRunningRecovery(pool, subscriptionId);
    if (running) throw new ConflictError(`The recovery ${running} of this webhook is still running.`);
  }
  throw new ConflictError(CHANGING);
}

/** How far a recovery is. */
export function getRecoveryEndpoint({ pool }: { pool: Database['pool'] }): AccountEndpoint {
  return {
    method: 'GET',
    path: RECOVERY_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const { id: subscriptionId } = await requiredSubscription(pool, request);
      const id = request.param('recovery_id');
      const recovery = isId('recovery', id) ? await findRecovery(pool, { id, subscriptionId }) : null;
      if (!recovery) throw new NotFoundError('Recovery not found.');
      return { code: 200, data: recovery };
    },
  };
}

/** What a recovery may put back. */
export const RECOVERABLE_STATUSES = ['failed', 'cancelled'] as const;
export type RecoverableStatus = (typeof RECOVERABLE_STATUSES)[number];

export const RECOVERY_STATUSES = ['running', 'done', 'cancelled'] as const;
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number];

/** A recovery as the API answers it; times are microseconds since the epoch, as digits. */
export interface RecoveryView {
  id: string;
  subscription_id: string;
  status: RecoveryStatus;
  /** Why it was cancelled. */
  reason: string | null;
  /** Deliveries created at or after it. */
  since: string;
  /** Deliveries created before it. */
  until: string;
  delivery_status: RecoverableStatus;
  /** How many deliveries matched when it was created. */
  total_count: number;
  /** How many have been put back; less than `total_count` in the end when others put some back meanwhile. */
  recovered_count: number;
  created_at: string;
  completed_at: string | null;
}

/** Body of `POST …/recover`, its times as microseconds since the epoch in digits. */
export interface RecoveryRequest {
  since: string;
  /** Omitted: the moment of the call. */
  until?: string;
  status: RecoverableStatus;
}

const moment = Joi.any().custom((value: unknown, helpers) => {
  const micros = typeof value === 'string' ? microsFromText(value) : null;
  return micros ?? helpers.message({ custom: `{{#label}} ${MOMENT_PROBLEM}` });
});

const schema = Joi.object<RecoveryRequest>({
  since: moment.required(),
  until: moment.empty(null),
  status: Joi.any()
    .empty(null)
    .valid(...RECOVERABLE_STATUSES)
    .default('failed'),
});

export function parseRecoveryRequest(
  body: unknown,
): { fields: RecoveryRequest; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) return { problems: problemsOf(error, 'body') };
  if (value.until !== undefined && BigInt(value.until) <= BigInt(value.since))
    return { problems: [{ field: 'until', message: 'until must be later than since' }] };
  return { fields: value };
}

type Pool = Database['pool'];

const COLUMNS = `
  r.id, r.subscription_id, r.status, r.reason, ${microsOf('r.since')} AS since, ${microsOf('r.until')} AS until,
  r.delivery_status, r.total_count, r.recovered_count, ${microsOf('r.created_at')} AS created_at,
  ${microsOf('r.completed_at')} AS completed_at`;

export interface NewRecovery {
  id: string;
  subscriptionId: string;
  /** Microseconds since the epoch, as digits. */
  since: string;
  /** As `since`; null for now. */
  until: string | null;
  deliveryStatus: RecoverableStatus;
}

// Two at once are parted by the index of what is running; the loser's insert adds nothing. Days beyond the one after
// `until` are left unread, as in the list of deliveries. What completes later is not matched: it may be what this very
// recovery put back, failed again. The dispatcher's pages hold the same conditions.
const INSERT = `
  WITH asked AS (
    SELECT s.id AS subscription_id, ${timestampOf('$3')} AS since, COALESCE(${timestampOf('$4')}, now()) AS until
    FROM subscriptions s
    WHERE s.id = $2 AND s.active AND s.deleted_at IS NULL
      AND NOT EXISTS (SELECT FROM recoveries WHERE subscription_id = $2 AND status = 'running')
  ), counted AS (
    SELECT count(*)::int AS total
    FROM deliveries d, asked
    WHERE d.subscription_id = $2 AND d.status = $5 AND d.status IN ('failed', 'cancelled')
      AND d.created_at >= asked.since AND d.created_at < asked.until
      AND d.day <= (asked.until AT TIME ZONE 'UTC')::date + 1
      AND d.completed_at <= now()
  )
  INSERT INTO recoveries AS r (id, subscription_id, status, since, until, delivery_status, total_count, completed_at)
  SELECT $1, asked.subscription_id, CASE total WHEN 0 THEN 'done' ELSE 'running' END, asked.since, asked.until, $5,
    total, CASE total WHEN 0 THEN now() END
  FROM asked, counted
  ON CONFLICT (subscription_id) WHERE status = 'running' DO NOTHING
  RETURNING ${COLUMNS}`;

/**
 * Counts what matches and begins a recovery of it, which is done at once when nothing does. Null when the subscription
 * is inactive or gone, or has a recovery that runs.
 */
export async function insertRecovery(pool: Pool, recovery: NewRecovery): Promise<RecoveryView | null> {
  const { id, subscriptionId, since, until, deliveryStatus } = recovery;
  const values = [id, subscriptionId, since, until, deliveryStatus];
  return (await runStatement<Row>(pool, INSERT, values))[0] ?? null;
}

type Row = RecoveryView & { [column: string]: unknown };

const SELECT_RUNNING = `SELECT id FROM recoveries WHERE subscription_id = $1 AND status = 'running'`;

/** The id of the subscription's recovery that runs, or null. */
export async function findRunningRecovery(pool: Pool, subscriptionId: string): Promise<string | null> {
  const [row] = await runStatement<{ id: string }>(pool, SELECT_RUNNING, [subscriptionId]);
  return row?.id ?? null;
}

const SELECT_ONE = `SELECT ${COLUMNS} FROM recoveries r WHERE r.id = $1 AND r.subscription_id = $2`;

export async function findRecovery(
  pool: Pool,
  { id, subscriptionId }: { id: string; subscriptionId: string },
): Promise<RecoveryView | null> {
  return (await runStatement<Row>(pool, SELECT_ONE, [id, subscriptionId]))[0] ?? null;
}
