import { connectionSentence } from '@runhook/database';
import { createLogger, Lifecycle, letGoOfStart, startFailure } from '@runhook/runtime';
import { createManagement } from './app.ts';
import { readSettings } from './settings.ts';

/** What a stop may take beyond the longest request, a test of an endpoint; a grace period must be above both together. */
const STOP_MARGIN_MS = 15_000;

try {
  const settings = readSettings();
  const logger = createLogger({ service: 'management', level: settings.logLevel });
  const lifecycle = new Lifecycle({ logger });
  // From here on a stop signal is obeyed, also one that comes before everything is open.
  const stopped = lifecycle.runUntilSignal({ budgetMs: settings.deliveryTimeoutMs + STOP_MARGIN_MS });
  try {
    await createManagement(settings, { process: { logger, lifecycle } });
    letGoOfStart();
  } catch (error) {
    if (!lifecycle.stopping) throw error;
  }
  process.exit(await stopped);
} catch (error) {
  // The logger's level is one of the settings, so what is wrong with them cannot go through it.
  process.stderr.write(`${startFailure(error, connectionSentence)}\n`);
  process.exit(1);
}
