import { describeConnectionProblem } from '@runhook/database';
import { collectStartupGarbage, createLogger, describeStartFailure, Lifecycle } from '@runhook/runtime';
import { createManagement } from './app.ts';
import { readSettings } from './settings.ts';

/** Time a stop may take beyond the longest request, a test of an endpoint. The grace period must exceed the total. */
const STOP_MARGIN_MS = 15_000;

try {
  const settings = readSettings();
  const logger = createLogger({ service: 'management', level: settings.logLevel });
  const lifecycle = new Lifecycle({ logger });
  // Handles stop signals from here on, also while resources are being opened.
  const stopResult = lifecycle.runUntilSignal({ budgetMs: settings.deliveryTimeoutMs + STOP_MARGIN_MS });
  try {
    await createManagement(settings, { process: { logger, lifecycle } });
    collectStartupGarbage();
  } catch (error) {
    if (!lifecycle.stopping) throw error;
  }
  process.exit(await stopResult);
} catch (error) {
  // The level of the logger is one of the settings, so problems with settings cannot be logged.
  process.stderr.write(`${describeStartFailure(error, describeConnectionProblem)}\n`);
  process.exit(1);
}
