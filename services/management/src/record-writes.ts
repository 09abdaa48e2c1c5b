import { type Pool, probeWrite, RecordWrites, WRITE_CHECK_EVERY_MS } from '@runhook/database';
import { type Logger, watchRecord } from '@runhook/runtime';

type RecordWatch = Omit<Parameters<typeof watchRecord>[0], 'everyMs' | 'logger'> & {
  logger: Pick<Logger, 'warn' | 'error'>;
};

/**
 * Reads are served while the record cannot be written: the probe says `degraded`, and stays green.
 * @param nowMs milliseconds that only grow; `performance.now` when omitted
 */
export function openRecordWrites(watch: RecordWatch, pool: Pool, nowMs?: () => number): RecordWrites {
  const writes = new RecordWrites({
    write: () => probeWrite(pool),
    ...(nowMs && { nowMs }),
    onChange: (state, err) => watch.logger.error({ state, err }, 'record writability changed'),
  });
  watchRecord({ ...watch, everyMs: WRITE_CHECK_EVERY_MS }, writes);
  return writes;
}
