import { connectionSentence } from '@runhook/database';
import { createLogger, describeSettings, Lifecycle, letGoOfStart, startFailure } from '@runhook/runtime';
import { startDispatcher } from './app.ts';
import { readSettings, SECRET_SETTINGS } from './settings.ts';

/** What a stop may take beyond the deadline of the attempts in flight; a grace period must be above both together. */
const STOP_MARGIN_MS = 15_000;

try {
  const settings = readSettings();
  const logger = createLogger({ service: 'dispatcher', level: settings.logLevel });
  const lifecycle = new Lifecycle({ logger });
  // From here on a stop signal is obeyed, also while the database or the queue is waited for.
  const budgetMs = settings.deliveryTimeoutMs + STOP_MARGIN_MS;
  const stopped = lifecycle.runUntilSignal({ budgetMs });
  try {
    const { port } = await startDispatcher(settings, lifecycle, logger);
    letGoOfStart();
    logger.info({ settings: describeSettings(settings, SECRET_SETTINGS), port }, 'dispatcher is working');
  } catch (error) {
    if (!lifecycle.stopping) throw error;
  }
  process.exit(await stopped);
} catch (error) {
  // The logger's level is one of the settings, so what is wrong with them cannot go through it.
  process.stderr.write(`${startFailure(error, connectionSentence)}\n`);
  process.exit(1);
}
