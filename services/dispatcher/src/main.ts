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

/** Time that a stop may take beyond the deadline of an attempt. The orchestrator's grace period must exceed the sum. */
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
  // Not logged, because the error may be one of the settings, and the log level is a setting.
  process.stderr.write(`${describeStartFailure(error, describeConnectionProblem)}\n`);
  process.exit(1);
}
