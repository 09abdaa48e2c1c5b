import {
  type Database,
  probeWrite,
  probeWriteElsewhere,
  RecordWrites,
  WRITE_CHECK_EVERY_MS,
} from '@runhook/database';
import { type Logger, watchRecord } from '@runhook/runtime';
import type { DispatcherSettings } from '../settings.ts';

type RecordWatch = Omit<Parameters<typeof watchRecord>[0], 'everyMs' | 'logger'> & {
  settings: Pick<DispatcherSettings, 'databaseUrl'>;
  logger: Pick<Logger, 'warn' | 'error'>;
};

/** A dispatcher is not ready if only its own connections cannot write: a restart gives it others. */
export function watchWrites(process: RecordWatch, { pool }: Database): void {
  const { settings, logger } = process;
  const writes = new RecordWrites({
    write: () => probeWrite(pool),
    writeElsewhere: () => probeWriteElsewhere(settings.databaseUrl),
    onChange: (state, err) => logger.error({ state, err }, 'record writability changed'),
  });
  watchRecord({ ...process, everyMs: WRITE_CHECK_EVERY_MS }, writes);
}
