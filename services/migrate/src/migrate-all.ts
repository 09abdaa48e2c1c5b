import { migrate } from '@runhook/database';
import { migrateQueue } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { MigrateSettings } from './settings.ts';
import { waitForDatabase } from './wait-for-database.ts';

/**
 * Brings the database to the schema of this release, and the queue's own schema when the queue is in PostgreSQL. What
 * is there already is left alone, so it may run again, and beside another one of itself: they take turns.
 * Throws with the first error; what was applied until then stays, and the next run goes on from there.
 */
export async function migrateAll(settings: MigrateSettings, logger: Pick<Logger, 'info' | 'warn'>) {
  const { databaseUrl, queueUrl, migrateWaitSeconds } = settings;
  await waitForDatabase(databaseUrl, {
    waitMs: migrateWaitSeconds * 1_000,
    onWait: (err) => logger.warn({ err }, 'waiting for the database'),
  });
  const applied = await migrate(databaseUrl);
  logger.info({ applied }, applied.length > 0 ? 'migrations applied' : 'the schema was up to date');
  if (queueUrl === undefined) return;
  const queueSchemaVersion = await migrateQueue(queueUrl);
  if (queueSchemaVersion !== null)
    logger.info({ queueSchemaVersion }, 'the schema of the queue is up to date');
}
