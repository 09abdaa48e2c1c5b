import { type BatchOptions, type Queryable, runInBatches } from '@runhook/database';

/**
 * Writes the failed sign-ins of windows that have ended to the audit log: one entry for each user, network and 15
 * minutes, in each account of the user. Safe to run concurrently.
 * @returns the number of windows
 */
export async function auditSignInFailures(database: Queryable, options: BatchOptions): Promise<number> {
  return await runInBatches(database, DELETE_ENDED_WINDOWS, options);
}

// A trigger writes the entries. The additional minute is for counts that management committed at the end of the window.
const DELETE_ENDED_WINDOWS = {
  name: 'audit-sign-in-failures',
  values: [],
  text: `
    DELETE FROM sign_in_failures WHERE (user_id, network, window_start) IN (
      SELECT user_id, network, window_start FROM sign_in_failures
      WHERE window_start < now() - interval '16 minutes'
      LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING user_id`,
};
