import { findConnectionProblem, isDatabaseUnavailable, requirePreparedStatements } from '@runhook/database';
import { type Finding, failed, ok, reasonOf } from './finding.ts';

/** Checks whether prepared statements work over the connections of `url`. Throws if the database cannot be reached. */
export async function examinePooler(url: string, connectTimeoutMs: number): Promise<Finding> {
  try {
    await requirePreparedStatements({ url, connectTimeoutMs });
    return ok('pooler', 'supports prepared statements, or no pooler is used');
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error;
    if (findConnectionProblem(error)?.code !== 'database_pooler')
      return failed('pooler', `could not be checked (${reasonOf(error)})`, 'See the log of PostgreSQL.');
    return failed(
      'pooler',
      'does not support prepared statements',
      'In pgbouncer.ini, set pool_mode = session or, with PgBouncer 1.21 or newer, max_prepared_statements = 200.',
    );
  }
}
