import {
  type Database,
  probeWrite,
  probeWriteOnNewConnection,
  RecordWrites,
  WRITE_CHECK_EVERY_MS,
} from '@runhook/database';
import { type Logger, watchRecord } from '@runhook/runtime';
import type { DispatcherSettings } from '../settings.ts';

type RecordWatch = Omit<Parameters<typeof watchRecord>[0], 'everyMs' | 'logger'> & {
  settings: Pick<DispatcherSettings, 'databaseUrl'>;
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
};

/**
 * Observes the writes of this process to the record. The process is not
 * ready while they fail and a new connection can write.
 * @param nowMs monotonic clock in milliseconds; `performance.now` when omitted
 */
export function watchWrites(process: RecordWatch, { pool }: Database, nowMs?: () => number): RecordWrites {
  const { settings, logger } = process;
  const writes = new RecordWrites({
    write: () => probeWrite(pool),
    writeOnNewConnection: () => probeWriteOnNewConnection(settings.databaseUrl),
    ...(nowMs && { nowMs }),
    onChange: (state, err) =>
      logger[state === 'writable' ? 'info' : 'error'](
        { state, err },
        'state of writes to PostgreSQL changed',
      ),
  });
  watchRecord({ ...process, everyMs: WRITE_CHECK_EVERY_MS }, writes);
  return writes;
}
