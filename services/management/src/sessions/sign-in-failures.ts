// SQL by hand: one statement adds to the counters of many users and networks, in windows of PostgreSQL's clock.
import { createHmac, hkdfSync } from 'node:crypto';
import type { EncryptionKey, Pool } from '@runhook/database';
import type { Counter } from 'prom-client';
import type { Log } from '../http/request-telemetry.ts';
import { networkOf } from './sign-in-limits.ts';

/** `limited` and `busy` are failures whose password was not checked. */
export const SIGN_IN_FAILURE_REASONS = ['wrong_password', 'unknown_email', 'limited', 'busy'] as const;

export interface SignInFailure {
  reason: (typeof SIGN_IN_FAILURE_REASONS)[number];
  /** In lower case. */
  email: string;
  clientAddress: string;
  /** Null unless a password of this user was checked. */
  userId: number | null;
}

/**
 * Reports failed sign-ins: each one in the log and the metric, and those of users in the audit log, as one entry for
 * each user, network and 15 minutes (docs/contract.md#audit-log).
 */
export interface SignInFailures {
  /** Does not wait for the database: only failures of existing users are stored, so a wait would reveal them. */
  record(failure: SignInFailure): void;
  /** Stores the counts since the last call; counts that cannot be stored remain for the next call. */
  flush(): Promise<void>;
}

/** Maximum number of counts in memory while PostgreSQL is unavailable; others are in the log only. */
const COUNTS_MAX = 10_000;

export function createSignInFailures(deps: {
  pool: Pick<Pool, 'query'>;
  log: Pick<Log, 'info'>;
  total: Pick<Counter<'reason'>, 'inc'>;
  /** Newest first. */
  encryptionKeys: readonly EncryptionKey[];
}): SignInFailures {
  const { pool, log, total, encryptionKeys } = deps;
  const hashKey = emailHashKey(encryptionKeys);
  let counts = new Map<string, FailureCount>();

  function add({ userId, network, count }: FailureCount): void {
    const key = `${userId} ${network}`;
    const counted = counts.get(key);
    if (counted) counted.count += count;
    else if (counts.size < COUNTS_MAX) counts.set(key, { userId, network, count });
  }

  return {
    record({ reason, email, clientAddress, userId }) {
      const emailHash = createHmac('sha256', hashKey).update(email).digest('hex');
      log.info({ reason, clientAddress, emailHash, userId }, 'sign-in failed');
      total.inc({ reason });
      if (userId !== null) add({ userId, network: networkOf(clientAddress), count: 1 });
    },
    async flush() {
      const flushed = [...counts.values()];
      if (flushed.length === 0) return;
      counts = new Map();
      try {
        await pool.query(ADD_COUNTS, [
          flushed.map(({ userId }) => userId),
          flushed.map(({ network }) => network),
          flushed.map(({ count }) => count),
        ]);
      } catch (error) {
        flushed.forEach(add);
        throw error;
      }
    },
  };
}

interface FailureCount {
  userId: number;
  network: string;
  count: number;
}

/** A key, because anyone could compute a plain hash of an address and search the log for it. */
function emailHashKey(keys: readonly EncryptionKey[]): Buffer {
  return Buffer.from(
    hkdfSync('sha256', keys[0]?.key ?? Buffer.alloc(0), '', 'runhook e-mail hashes in logs', 32),
  );
}

/** Locks rows in one order, because several processes add to the same ones. The user may have been deleted meanwhile. */
const ADD_COUNTS = `
  INSERT INTO sign_in_failures (user_id, network, window_start, count)
  SELECT u.id, f.network, date_bin('15 minutes', now(), timestamptz 'epoch'), f.count
  FROM unnest($1::bigint[], $2::text[], $3::int[]) AS f (user_id, network, count)
  JOIN users u ON u.id = f.user_id
  ORDER BY u.id, f.network
  ON CONFLICT (user_id, network, window_start) DO UPDATE SET count = sign_in_failures.count + excluded.count`;
