import { describeConnectionProblem } from '@runhook/database';
import { createLogger, describeStartFailure } from '@runhook/runtime';
import { runCommand } from './command.ts';
import { migrateAll } from './migrate-all.ts';
import { readSettings } from './settings.ts';

// Process 1 of a container ignores signals that it has no handler for. PostgreSQL rolls back an interrupted migration,
// unless that runs outside a transaction.
process.once('SIGTERM', () => process.exit(143)).once('SIGINT', () => process.exit(130));

/** Codes of errors whose message is complete, so that it is printed as it is. */
const SELF_EXPLANATORY = new Set(['migration_failed', 'migration_unresolved', 'roles_missing']);

try {
  const settings = readSettings();
  const args = process.argv.slice(2);
  if (args.length > 0) process.exit(await runCommand(settings, args, (line) => process.stdout.write(line)));
  await migrateAll(settings, createLogger({ service: 'migrate', level: settings.logLevel }));
  process.exit(0);
} catch (error) {
  const { code = '', message } = error as Error & { code?: string };
  const sentence = SELF_EXPLANATORY.has(code)
    ? message
    : describeStartFailure(error, describeConnectionProblem);
  process.stderr.write(`${sentence}\n`);
  process.exit(1);
}
