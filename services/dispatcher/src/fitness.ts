import { setTimeout as sleep } from 'node:timers/promises';
import { KeysUnknownError, lockRoom, type Pool, SchemaBehindError } from '@runhook/database';
import { type Health, type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';
import type { Gauge } from 'prom-client';
import { retryWhileUnavailable, StoppingError, type Waiting } from './record/retry-while-unavailable.ts';
import type { DispatcherSettings } from './settings.ts';

/**
 * A dispatcher whose schema or keys do not fit, for it was started before the migration or has outlived a rotation of
 * the keys, takes no jobs: each would fail and wait, while others could do it. It begins by itself when they fit.
 */
export interface Fitness {
  /** Resolves once all fits; throws what `check` throws when it cannot tell. */
  untilFit(): Promise<void>;
  /** Looks from now on whether all still fits, and lets the workers take nothing while it does not. */
  watch(workers: readonly PausableWorker[]): void;
}

export interface PausableWorker {
  isPaused(): boolean;
  pause(doNotWaitActive: boolean): Promise<void>;
  resume(): Promise<void> | void;
}

export interface FitnessOptions {
  /** Throws what does not fit; whatever else it throws changes nothing. */
  check: () => Promise<void>;
  health: Health;
  lifecycle: Lifecycle;
  logger: Pick<Logger, 'debug' | 'info' | 'warn'>;
  stopping: AbortSignal;
  /** Whether it idles. */
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

/** What cannot be asked is no misfit. */
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

/** Before statements over all days of a long log fail for it, now and then, once many run at the same time. */
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
