import { EnvironmentError } from '@runhook/runtime';
import { createManagement } from './app.ts';
import { readSettings } from './settings.ts';

try {
  const management = await createManagement(readSettings());
  process.exit(await management.runUntilSignal());
} catch (error) {
  // The logger's level is one of the settings, so what is wrong with them cannot go through it.
  process.stderr.write(`${error instanceof EnvironmentError ? error.message : (error as Error).stack}\n`);
  process.exit(1);
}
