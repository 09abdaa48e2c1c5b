import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import type { Health } from './health.ts';
import type { Lifecycle } from './lifecycle.ts';
import { startPeriodic } from './timers.ts';

/** The members of `RecordWrites` of `@runhook/database` that are used here. */
interface Writes {
  readonly state: 'writable' | 'unwritable' | 'process_fault';
  check(): Promise<void>;
}

interface RecordWatch {
  health: Health;
  registry: Registry;
  lifecycle: Lifecycle;
  logger: Pick<Logger, 'warn'>;
  everyMs: number;
}

/** An error whose code and message are shown by the probe. */
class NotWritableError extends Error {
  readonly code: string;
  readonly publicMessage: string;

  constructor(code: string, publicMessage: string) {
    super(publicMessage);
    this.code = code;
    this.publicMessage = publicMessage;
  }
}

/** Checks regularly whether PostgreSQL accepts writes, and reports it; see {@link registerRecordHealth}. */
export function watchRecord(watch: RecordWatch, writes: Writes): void {
  const { health, registry, lifecycle, logger, everyMs } = watch;
  registerRecordHealth(health, registry, () => writes.state);
  const checking = startPeriodic(
    everyMs,
    () => writes.check(),
    (err) => logger.warn({ err }, 'the check of writes to PostgreSQL failed'),
  );
  lifecycle.onClose('record check', () => void checking.stop());
}

/**
 * Reports whether PostgreSQL accepts writes. If no connection can write, the process is `degraded` but ready, since it
 * can serve reads; if only the connections of this process cannot, it is not ready.
 */
export function registerRecordHealth(
  health: Health,
  registry: Registry,
  readState: () => Writes['state'],
): void {
  health.register(
    'record',
    'ready',
    () => {
      if (readState() === 'unwritable')
        throw new NotWritableError(
          'RECORD_NOT_WRITABLE',
          'PostgreSQL has taken no write for 30 s: docs/runbook.md#runhookrecordnotwritable.',
        );
    },
    { required: false },
  );
  health.register('record connections', 'ready', () => {
    if (readState() === 'process_fault')
      throw new NotWritableError(
        'RECORD_WRITES_FAIL',
        'Writes of this process to PostgreSQL fail, while another connection can write: docs/runbook.md#runhookrecordnotwritable.',
      );
  });
  new Gauge({
    name: 'runhook_record_writable',
    help: 'Whether this process can write to PostgreSQL: 0 when one kind of writes has failed for 30 s.',
    registers: [registry],
    collect() {
      this.set(readState() === 'writable' ? 1 : 0);
    },
  });
}
