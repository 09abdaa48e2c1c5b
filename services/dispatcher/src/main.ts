import { createLogger, describeSettings, EnvironmentError, Lifecycle } from '@runhook/runtime';
import { startDispatcher } from './app.ts';
import { readSettings } from './settings.ts';

try {
  const settings = readSettings();
  const logger = createLogger({ service: 'dispatcher', level: settings.logLevel });
  const lifecycle = new Lifecycle({ logger });
  const stopped = lifecycle.runUntilSignal();
  const { port } = await startDispatcher(settings, lifecycle, logger);
  const secret = ['databaseUrl', 'queueUrl', 'encryptionKeys'] as const;
  logger.info({ settings: describeSettings(settings, secret), port }, 'dispatcher is ready');
  process.exit(await stopped);
} catch (error) {
  if (!(error instanceof EnvironmentError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
