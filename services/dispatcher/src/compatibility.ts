import { setTimeout as sleep } from 'node:timers/promises';
import { KeysUnknownError, type Pool, readLockCapacity, SchemaBehindError } from '@runhook/database';
import { type Health, type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import type { Gauge } from 'prom-client';
import { type RetryOptions, retryWhileUnavailable, StoppingError } from './record/retry-while-unavailable.ts';
import type { DispatcherSettings } from './settings.ts';

/**
 * Prevents a dispatcher with an incompatible schema or keys from taking jobs, such as one that was started before the
 * migration or has outlived a rotation of the keys. Its jobs would fail and wait, while other dispatchers could process
 * them. It starts automatically once schema and keys are compatible.
 */
export interface CompatibilityCheck {
  /** Resolves once schema and keys are compatible; throws the error of `check` if it cannot decide. */
  waitUntilCompatible(): Promise<void>;
  /** Checks periodically from now on, and pauses the workers while schema or keys are incompatible. */
  watch(workers: readonly PausableWorker[]): void;
}

export interface PausableWorker {
  isPaused(): boolean;
  pause(doNotWaitActive: boolean): Promise<void>;
  resume(): Promise<void> | void;
}

export interface CompatibilityCheckOptions {
  /** Throws SchemaBehindError or KeysUnknownError; other errors leave the state unchanged. */
  check: () => Promise<void>;
  health: Health;
  lifecycle: Lifecycle;
  logger: Pick<Logger, 'debug' | 'info' | 'warn'>;
  stopping: AbortSignal;
  /** 1 while the dispatcher takes no jobs, because schema or keys are incompatible. */
  idle: Gauge;
  everyMs?: number;
}

const CHECK_EVERY_MS = 2_000;

export function openCompatibilityCheck(options: CompatibilityCheckOptions): CompatibilityCheck {
  const { check, health, lifecycle, logger, stopping, idle, everyMs = CHECK_EVERY_MS } = options;
  let incompatibility: Error | null = null;

  async function runCheck(): Promise<void> {
    const found = await findIncompatibility(check);
    if (found !== null && incompatibility?.message !== found.message)
      logger.warn({ err: found }, 'schema or encryption keys incompatible: taking no jobs');
    if (found === null && incompatibility !== null)
      logger.info('schema and encryption keys compatible: taking jobs');
    incompatibility = found;
    idle.set(incompatibility === null ? 0 : 1);
  }

  health.register('compatibility', 'ready', () => {
    if (incompatibility !== null) throw incompatibility;
  });

  return {
    async waitUntilCompatible() {
      for (await runCheck(); incompatibility !== null; await runCheck()) {
        await sleep(everyMs, undefined, { signal: stopping }).catch((cause: unknown) => {
          throw new StoppingError('The dispatcher is stopping.', { cause });
        });
      }
    },
    watch(workers) {
      const checkAndPause = async () => {
        await runCheck();
        if (lifecycle.stopping) return;
        for (const worker of workers) {
          if (incompatibility !== null && !worker.isPaused()) await worker.pause(true);
          if (incompatibility === null && worker.isPaused()) await worker.resume();
        }
      };
      const checking = startPeriodic(everyMs, checkAndPause, (err) =>
        logger.debug({ err }, 'schema and encryption keys could not be checked'),
      );
      lifecycle.onClose('compatibility', () => void checking.stop());
    },
  };
}

/** Returns an incompatibility; throws other errors, such as an unavailable database. */
async function findIncompatibility(check: () => Promise<void>): Promise<Error | null> {
  try {
    await check();
    return null;
  } catch (error) {
    if (error instanceof SchemaBehindError || error instanceof KeysUnknownError) return error;
    throw error;
  }
}

interface LockCapacityProcess extends RetryOptions {
  settings: Pick<DispatcherSettings, 'logRetentionDays'>;
}

/** Warns if the lock table of PostgreSQL is too small for concurrent statements over all days of the log. */
export async function warnAboutLockCapacity(process: LockCapacityProcess, pool: Pool): Promise<void> {
  const { logRetentionDays } = process.settings;
  const capacity = await retryWhileUnavailable(process, () => readLockCapacity(pool, logRetentionDays));
  if (capacity.setting >= capacity.settingNeeded) return;
  process.logger.warn(
    { ...capacity, logRetentionDays },
    `PostgreSQL can hold the locks of ${capacity.statementsMax} concurrent statements over all days of the log: set its ` +
      `max_locks_per_transaction to ${capacity.settingNeeded} or more, or LOG_RETENTION_DAYS lower`,
  );
}
