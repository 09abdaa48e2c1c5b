import { type Pool, runStatement } from '@runhook/database';
import { REFILL_FACTOR } from '../policy/rate-limit.ts';

/*
 * Token bucket of each subscription with a rate limit, in the clock of PostgreSQL (policy/rate-limit.ts). The rate is that
 * of the current subscription, so a change applies to the next draw.
 */

/** Tokens of a draw. */
export interface Draw {
  count: number;
  /** Tokens that the bucket has left. */
  left: number;
  /** Requests per second. */
  rate: number;
  /** Time by `performance.now()` before the statement was executed. */
  drawnAtMs: number;
}

// The clock is read once the row is locked, so concurrent draws read it in their order. A clock that was set back adds no
// tokens, and the bucket continues from the new time.
const DRAW = `
  WITH locked AS MATERIALIZED (
    SELECT b.subscription_id, b.tokens, b.updated_at, s.rate_limit
    FROM rate_buckets b JOIN subscriptions s ON s.id = b.subscription_id
    WHERE b.subscription_id = $1 AND s.rate_limit IS NOT NULL
    FOR NO KEY UPDATE OF b
  ), timed AS MATERIALIZED (
    SELECT *, clock_timestamp() AS at FROM locked
  ), refilled AS MATERIALIZED (
    SELECT subscription_id, rate_limit, at, least(greatest(1, rate_limit),
      tokens + greatest(0, extract(epoch FROM at - updated_at)::float8) * rate_limit * ${REFILL_FACTOR}::float8) AS tokens
    FROM timed
  ), drawn AS MATERIALIZED (
    SELECT *, least(floor(tokens), $2::int) AS count FROM refilled
  )
  UPDATE rate_buckets b
  SET tokens = d.tokens - d.count, updated_at = d.at
  FROM drawn d WHERE b.subscription_id = d.subscription_id
  RETURNING d.count::int AS count, b.tokens AS left, d.rate_limit AS rate`;

const CREATE_FULL = `
  INSERT INTO rate_buckets (subscription_id, tokens, updated_at)
  SELECT id, greatest(1, rate_limit), clock_timestamp() FROM subscriptions WHERE id = $1 AND rate_limit IS NOT NULL
  ON CONFLICT (subscription_id) DO NOTHING`;

/** Draws up to `max` tokens. Returns null if the subscription has no limit. A result that is lost only loses tokens. */
export async function drawTokens(pool: Pool, subscriptionId: string, max: number): Promise<Draw | null> {
  const values = [subscriptionId, max];
  const draw = async (): Promise<Draw | null> => {
    const drawnAtMs = performance.now();
    type Row = Omit<Draw, 'drawnAtMs'> & { [column: string]: unknown };
    const [row] = await runStatement<Row>(pool, DRAW, values, 'draw-tokens');
    return row === undefined ? null : { ...row, drawnAtMs };
  };
  const drawn = await draw();
  if (drawn !== null) return drawn;
  await runStatement(pool, CREATE_FULL, [subscriptionId], 'create-rate-bucket');
  return await draw();
}

/** Result of a pass of a lane's job. */
export interface RateUse {
  /** Number of tokens that were drawn and not used. */
  unused: number;
  /** Whether deliveries waited for tokens. */
  hasWaited: boolean;
}

const SETTLE = `
  UPDATE rate_buckets b
  SET tokens = least(greatest(1, s.rate_limit), b.tokens + $2::int),
      limited_at = CASE WHEN $3 THEN now() ELSE b.limited_at END
  FROM subscriptions s WHERE s.id = b.subscription_id AND b.subscription_id = $1 AND s.rate_limit IS NOT NULL`;

/** Returns unused tokens. Must not be retried if it may have been executed, because that would add tokens. */
export async function settleTokens(
  pool: Pool,
  subscriptionId: string,
  { unused, hasWaited }: RateUse,
): Promise<void> {
  await runStatement(pool, SETTLE, [subscriptionId, unused, hasWaited], 'settle-tokens');
}
