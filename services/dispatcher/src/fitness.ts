import { setTimeout as sleep } from 'node:timers/promises';
import { KeysUnknownError, lockRoom, type Pool, SchemaBehindError } from '@runhook/database';
import { type Health, type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import type { Gauge } from 'prom-client';
import { retryWhileUnavailable, StoppingError, type Waiting } from './record/retry-while-unavailable.ts';
import type { DispatcherSettings } from './settings.ts';

/**
 * Prevents a dispatcher with an incompatible schema or keys from taking jobs, because it was started before the
 * migration or has outlived a rotation of the keys. Its jobs would fail and wait, while other dispatchers could process
 * them. It starts automatically once they are compatible.
 */
export interface Fitness {
  /** Resolves once schema and keys are compatible; throws the error of `check` if it cannot decide. */
  untilFit(): Promise<void>;
  /** Checks periodically from now on, and pauses the workers while schema or keys are incompatible. */
  watch(workers: readonly PausableWorker[]): void;
}

export interface PausableWorker {
  isPaused(): boolean;
  pause(doNotWaitActive: boolean): Promise<void>;
  resume(): Promise<void> | void;
}

export interface FitnessOptions {
  /** Throws an incompatibility; any other error leaves the state unchanged. */
  check: () => Promise<void>;
  health: Health;
  lifecycle: Lifecycle;
  logger: Pick<Logger, 'debug' | 'info' | 'warn'>;
  stopping: AbortSignal;
  /** Whether the dispatcher is idle. */
  idle: Gauge;
  everyMs?: number;
}

const EVERY_MS = 2_000;

export function openFitness(options: FitnessOptions): Fitness {
  const { check, health, lifecycle, logger, stopping, idle, everyMs = EVERY_MS } = options;
  let misfit: Error | null = null;

  async function look(): Promise<void> {
    const found = await misfitOf(check);
    if (found !== null && misfit?.message !== found.message)
      logger.warn({ err: found }, 'takes no jobs until schema and keys fit');
    if (found === null && misfit !== null) logger.info('schema and keys fit: takes jobs');
    misfit = found;
    idle.set(misfit === null ? 0 : 1);
  }

  health.register('fitness', 'ready', () => {
    if (misfit !== null) throw misfit;
  });

  return {
    async untilFit() {
      for (await look(); misfit !== null; await look()) {
        await sleep(everyMs, undefined, { signal: stopping }).catch((cause: unknown) => {
          throw new StoppingError('The dispatcher is stopping.', { cause });
        });
      }
    },
    watch(workers) {
      const lookAndTell = async () => {
        await look();
        if (lifecycle.stopping) return;
        for (const worker of workers) {
          if (misfit !== null && !worker.isPaused()) await worker.pause(true);
          if (misfit === null && worker.isPaused()) await worker.resume();
        }
      };
      const looks = startPeriodic(everyMs, lookAndTell, (err) =>
        logger.debug({ err }, 'cannot tell what fits'),
      );
      lifecycle.onClose('fitness', () => void looks.stop());
    },
  };
}

/** Returns an incompatibility; throws other errors, such as an unavailable database. */
async function misfitOf(check: () => Promise<void>): Promise<Error | null> {
  try {
    await check();
    return null;
  } catch (error) {
    if (error instanceof SchemaBehindError || error instanceof KeysUnknownError) return error;
    throw error;
  }
}

interface LocksProcess extends Waiting {
  settings: Pick<DispatcherSettings, 'logRetentionDays'>;
}

/** Warns before statements over all days of a long log fail occasionally because many run concurrently. */
export async function warnOfLocks(process: LocksProcess, pool: Pool): Promise<void> {
  const { logRetentionDays } = process.settings;
  const room = await retryWhileUnavailable(process, () => lockRoom(pool, logRetentionDays));
  if (room.setting >= room.settingNeeded) return;
  process.logger.warn(
    { ...room, logRetentionDays },
    `PostgreSQL has room for the locks of ${room.atOnce} statements over all days of the log at once: set its ` +
      `max_locks_per_transaction to ${room.settingNeeded} or more, or LOG_RETENTION_DAYS lower`,
  );
}
