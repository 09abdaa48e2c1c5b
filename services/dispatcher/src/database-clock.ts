import { type Database, readServerTimeMs } from '@runhook/database';
import { type Clock, type OpenServerClockOptions, openServerClock } from '@runhook/runtime';
import { type RetryOptions, retryWhileUnavailable } from './record/retry-while-unavailable.ts';

/** Opens PostgreSQL's clock, by which deliveries and jobs are due. Resolves once it is measured. */
export async function openDatabaseClock(
  process: Omit<OpenServerClockOptions, 'read'> & RetryOptions,
  { pool }: Database,
): Promise<Clock> {
  const clock = openServerClock({ ...process, read: () => readServerTimeMs(pool) });
  await retryWhileUnavailable(process, () => clock.measure());
  return clock;
}
