import { createLogger, EnvironmentError } from '@runhook/runtime';
import { migrateAll, readSettings } from './migrate-all.ts';

// As process 1 of a container it would not even notice a signal without this. Each migration is one transaction, so
// what is under way is undone by PostgreSQL.
process.once('SIGTERM', () => process.exit(143)).once('SIGINT', () => process.exit(130));

try {
  const settings = readSettings();
  const logger = createLogger({ service: 'migrate', level: settings.logLevel });
  await migrateAll(settings, logger);
  process.exit(0);
} catch (error) {
  process.stderr.write(`${error instanceof EnvironmentError ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
