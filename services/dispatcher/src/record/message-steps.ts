import {
  type JobRunEvent,
  parseRunSteps,
  RUN_STEP_LIMITS,
  type RunStep,
  stepsBytes,
} from '@runhook/contract';
import {
  compressRunSteps,
  inTransaction,
  isItemFault,
  type Pool,
  RunStepsLimitError,
  saveRunSteps,
} from '@runhook/database';
import type { Logger } from '@runhook/runtime';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

/** Results for the steps of a message. All but `stored` leave them out. */
export const MESSAGE_STEPS_RESULTS = ['stored', 'too_large', 'invalid', 'over_limit', 'rejected'] as const;

type LeftOut = Exclude<(typeof MESSAGE_STEPS_RESULTS)[number], 'stored'>;

export interface MessageStepsOptions {
  pool: Pool;
  /** Quota of an account; see `RunStepsTarget`. */
  accountBytesMax: number;
  /** Ends the waits for an unavailable database. */
  stopping: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'messageSteps'>;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Stores the steps that messages of the queue carry next to their event. They are only data about the run: steps that
 * cannot be stored are left out with a line in the log, and never stop the event.
 */
export class MessageSteps {
  readonly #options: MessageStepsOptions;

  constructor(options: MessageStepsOptions) {
    this.#options = options;
  }

  /** Returns the steps of a message; null if it has none, or they are left out. */
  read(event: JobRunEvent, message: unknown): RunStep[] | null {
    const reported = (message as { run_steps?: unknown }).run_steps;
    if (reported === undefined || reported === null) return null;
    const { messageBytesMax } = RUN_STEP_LIMITS;
    try {
      const bytes = stepsBytes(reported);
      if (bytes > messageBytesMax)
        return this.#leaveOut(
          event,
          'too_large',
          `the steps have ${bytes} bytes, the limit is ${messageBytesMax}`,
        );
      const { steps, problems } = parseRunSteps(reported);
      if (problems)
        return this.#leaveOut(event, 'invalid', problems.map(({ message }) => message).join('; '));
      return steps.length === 0 ? null : steps;
    } catch {
      // JSON and Joi throw for values that are nested more deeply than the stack allows.
      return this.#leaveOut(event, 'invalid', 'the steps cannot be read');
    }
  }

  /** Stores the steps, or leaves them out. Safe to repeat. */
  async store(event: JobRunEvent, steps: readonly RunStep[]): Promise<void> {
    const { pool, accountBytesMax, metrics } = this.#options;
    // Messages are processed in any order.
    const target = {
      accountId: event.accountId,
      runId: Number(event.data.runId),
      accountBytesMax,
      retainsEnded: 'from_progress',
    } as const;
    const compressed = await compressRunSteps(steps);
    try {
      await retryWhileUnavailable(this.#options, () =>
        inTransaction(pool, (transaction) => saveRunSteps(transaction, target, compressed)),
      );
      metrics.messageSteps.stored.inc();
    } catch (error) {
      if (error instanceof RunStepsLimitError) this.#leaveOut(event, 'over_limit', error.message);
      else if (isItemFault(error)) this.#leaveOut(event, 'rejected', (error as Error).message);
      else throw error;
    }
  }

  #leaveOut({ accountId, eventId, data }: JobRunEvent, result: LeftOut, reason: string): null {
    const { metrics, logger } = this.#options;
    metrics.messageSteps[result].inc();
    logger.warn({ accountId, eventId, runId: data.runId, reason }, 'steps of a message left out');
    return null;
  }
}
