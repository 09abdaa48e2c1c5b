import { type Pool, probeWrite, RecordWrites, WRITE_CHECK_EVERY_MS } from '@runhook/database';
import { type Logger, watchRecord } from '@runhook/runtime';

type RecordWatch = Omit<Parameters<typeof watchRecord>[0], 'everyMs' | 'logger'> & {
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
};

/**
 * Tracks whether the record can be written. While it cannot, reads are served, and the readiness probe succeeds with
 * status `degraded`.
 * @param nowMs monotonic clock in milliseconds; `performance.now` when omitted
 */
export function openRecordWrites(watch: RecordWatch, pool: Pool, nowMs?: () => number): RecordWrites {
  const writes = new RecordWrites({
    write: () => probeWrite(pool),
    ...(nowMs && { nowMs }),
    onChange: (state, err) =>
      watch.logger[state === 'writable' ? 'info' : 'error'](
        { state, err },
        'state of writes to PostgreSQL changed',
      ),
  });
  watchRecord({ ...watch, everyMs: WRITE_CHECK_EVERY_MS }, writes);
  return writes;
}
