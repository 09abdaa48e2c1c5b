import { describeConnectionProblem } from '@runhook/database';
import {
  collectStartupGarbage,
  createLogger,
  describeSettings,
  describeStartFailure,
  Lifecycle,
} from '@runhook/runtime';
import { startDispatcher } from './app.ts';
import { readSettings, SECRET_SETTINGS } from './settings.ts';

/** Time that a stop may take beyond the deadline of attempts in flight; the grace period must exceed their sum. */
const STOP_MARGIN_MS = 15_000;

try {
  const settings = readSettings();
  const logger = createLogger({ service: 'dispatcher', level: settings.logLevel });
  const lifecycle = new Lifecycle({ logger });
  // From here on a stop signal is handled, even while the process waits for the database or the queue.
  const budgetMs = settings.deliveryTimeoutMs + STOP_MARGIN_MS;
  const stopped = lifecycle.runUntilSignal({ budgetMs });
  try {
    const { port } = await startDispatcher(settings, lifecycle, logger);
    collectStartupGarbage();
    logger.info({ settings: describeSettings(settings, SECRET_SETTINGS), port }, 'dispatcher started');
  } catch (error) {
    if (!lifecycle.stopping) throw error;
  }
  process.exit(await stopped);
} catch (error) {
  // The log level is one of the settings, so their errors cannot be logged.
  process.stderr.write(`${describeStartFailure(error, describeConnectionProblem)}\n`);
  process.exit(1);
}
