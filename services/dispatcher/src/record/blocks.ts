import { type Pool, runStatement } from '@runhook/database';
import { endpointOf } from '../target.ts';

/*
 * `Retry-After` of an endpoint, stored on its subscription (docs/contract.md#retry-after). Each change raises the version of the
 * subscription, so every dispatcher reads it before its next first attempt; retries and lanes read it with their deliveries.
 */

const PROBE_EVERY = `interval '60 seconds'`;

export interface BlockChange {
  subscriptionId: string;
  /** Address that has responded. A late response of a former one changes nothing. */
  clientUrl: string;
  /** Milliseconds for which the endpoint asks for no requests; 0 ends the block. */
  forMs: number;
}

// Concurrent responses ask for nearly the same time: ignoring changes of up to a second avoids a new version for each.
const CHANGE = `
  UPDATE subscriptions s
  SET blocked_until = now() + i.for_ms * interval '1 millisecond', probe_at = now() + ${PROBE_EVERY}
  FROM (
    SELECT id, client_url, max(for_ms) AS for_ms
    FROM unnest($1::text[], $2::text[], $3::int[]) AS changes (id, client_url, for_ms) GROUP BY id, client_url
  ) AS i
  WHERE s.id = i.id AND s.client_url = i.client_url AND CASE WHEN i.for_ms = 0 THEN s.blocked_until > now() ELSE
    s.blocked_until IS NULL OR abs(extract(epoch FROM s.blocked_until - now()) * 1000 - i.for_ms) > 1000 END`;

export async function changeBlocks(pool: Pool, changes: readonly BlockChange[]): Promise<void> {
  const values = [
    changes.map(({ subscriptionId }) => subscriptionId),
    changes.map(({ clientUrl }) => clientUrl),
    changes.map(({ forMs }) => forMs),
  ];
  await runStatement(pool, CHANGE, values, 'change-blocks');
}

export interface Block {
  /** Server of the current client_url. */
  origin: string;
  /** Remaining time of the block; 0 if the subscription is not blocked. */
  blockedMs: number;
  /** Whether the caller has claimed the probe: it may send one request, which no other dispatcher sends. */
  isProbe: boolean;
  /** Requests per second of the subscription; null without a limit. */
  rateLimit: number | null;
}

const CLAIM_PROBE = `
  WITH probe AS (
    UPDATE subscriptions SET probe_at = now() + ${PROBE_EVERY}
    WHERE id = $1 AND active AND deleted_at IS NULL AND blocked_until > now() AND probe_at <= now()
    RETURNING id
  )
  SELECT client_url AS "clientUrl", rate_limit AS "rateLimit", EXISTS (SELECT FROM probe) AS "isProbe",
    CASE WHEN active AND deleted_at IS NULL
      THEN greatest(0, ceil(extract(epoch FROM blocked_until - now()) * 1000))::int ELSE 0 END AS "blockedMs"
  FROM subscriptions WHERE id = $1`;

/** Returns the block of a subscription, and claims its probe if that is due. */
export async function claimProbe(pool: Pool, subscriptionId: string): Promise<Block> {
  type Row = Omit<Block, 'origin'> & { clientUrl: string; [column: string]: unknown };
  const [row] = await runStatement<Row>(pool, CLAIM_PROBE, [subscriptionId], 'claim-probe');
  const { clientUrl = '', blockedMs = 0, isProbe = false, rateLimit = null } = row ?? {};
  return { origin: endpointOf(clientUrl), blockedMs, isProbe, rateLimit };
}
