import { setTimeout as wait } from 'node:timers/promises';
import {
  describeConnectionProblem,
  isDatabaseUnavailable,
  openDatabase,
  runStatement,
} from '@runhook/database';
import {
  type DatabaseRoles,
  disableJit,
  grantPrivileges,
  migrate,
  prepareRoles,
  renewFeedGeneration,
  rewriteLog,
} from '@runhook/database/migrate';
import { migrateQueue, queueBackendName, queueUrlWithLogin } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { MigrateSettings } from './settings.ts';

/**
 * Updates the database to the schema of this release, and BullMQ's schema if the queue is in PostgreSQL. With URLs of the
 * services, also creates their roles and grants their privileges. Idempotent; concurrent runs are serialized. Throws the
 * first error; completed steps stay, and the next run continues.
 */
export async function migrateAll(settings: MigrateSettings, logger: Pick<Logger, 'info' | 'warn'>) {
  const { databaseUrl, roles, migrateWaitSeconds } = settings;
  await waitForDatabase(databaseUrl, {
    waitMs: migrateWaitSeconds * 1_000,
    onWait: (error) => logger.warn({ reason: describeConnectionProblem(error) }, 'waiting for the database'),
  });
  const ownerUrl = roles === undefined ? databaseUrl : await prepareRoles(databaseUrl, roles);
  const applied = await migrate(ownerUrl, {
    onLockWait: (err) =>
      logger.warn({ err }, 'a migration waits for a lock of another session and is tried again'),
  });
  logger.info({ applied }, applied.length > 0 ? 'migrations applied' : 'the schema is up to date');
  if (await renewFeedGeneration(ownerUrl))
    logger.info({}, 'the database was restored: positions of new events follow those on record');
  await rewriteOldRows(ownerUrl, logger);
  if (!(await disableJit(ownerUrl)))
    logger.warn(
      {},
      'JIT stays on for connections of a pooler: the role may not change its own settings; set jit = off for the role or the server',
    );
  if (roles === undefined)
    logger.warn(
      {},
      'the services use the role that owns the tables: set MANAGEMENT_DATABASE_URL and DISPATCHER_DATABASE_URL (docs/upgrading.md)',
    );
  else await grantPrivileges(ownerUrl, roles, settings.logRetentionDays);
  await migrateQueueOf(settings, logger);
}

async function migrateQueueOf(
  { databaseUrl, queueUrl, roles }: MigrateSettings,
  logger: Pick<Logger, 'info'>,
): Promise<void> {
  if (queueUrl === undefined) return;
  const url = queueUrlWithLogin(queueUrl, databaseUrl);
  const queueSchemaVersion = await (roles === undefined || queueBackendName(url) === 'Redis'
    ? migrateQueue(url)
    : migrateQueueAsOwner(url, roles));
  if (queueSchemaVersion !== null)
    logger.info({ queueSchemaVersion }, 'the schema of the queue is up to date');
}

/** The queue may be on another server, which has separate roles. */
async function migrateQueueAsOwner(url: string, roles: DatabaseRoles): Promise<number | null> {
  return await migrateQueue(await prepareRoles(url, roles), [roles.management.name, roles.dispatcher.name]);
}

/** Timeout of a statement for at most 1,000 rows. It is long, because a timeout fails the run of migrate. */
const REWRITE_TIMEOUT_MS = 3_600_000;

/** Rewrites rows of releases before 0.2.0 (docs/upgrading.md). The next run continues an interrupted one. */
async function rewriteOldRows(url: string, logger: Pick<Logger, 'info' | 'warn'>): Promise<void> {
  const database = openDatabase({
    url,
    connectionsMax: 2,
    statementTimeoutMs: REWRITE_TIMEOUT_MS,
    queryTimeoutMs: REWRITE_TIMEOUT_MS,
  });
  try {
    await rewriteLog(database.pool, {
      onTable({ table, rewritten, setAside, withoutHeaders, reason }) {
        logger.info({ table, rewritten }, 'rows of the log rewritten');
        if (setAside > 0)
          logger.warn(
            { table, setAside, reason },
            'unreadable events set aside: list them with `admin queue failed`',
          );
        if (withoutHeaders > 0)
          logger.warn(
            { table, withoutHeaders, reason },
            'request and response headers in the log could not be read and were removed; the rest of their rows is unchanged',
          );
      },
    });
  } finally {
    await database.close();
  }
}

const FIRST_PAUSE_MS = 100;
const PAUSE_MAX_MS = 2_000;

/**
 * Resolves once the database responds. An unavailable database is queried again for up to `waitMs`; a rejection (a
 * wrong password, an unknown database) is thrown at once.
 * @param onWait called with the error of each query that will be repeated
 */
export async function waitForDatabase(
  url: string,
  { waitMs, onWait }: { waitMs: number; onWait: (error: unknown) => void },
): Promise<void> {
  const deadline = performance.now() + waitMs;
  const database = openDatabase({ url, connectionsMax: 1 });
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      try {
        await runStatement(database.pool, 'SELECT 1', []);
        return;
      } catch (error) {
        if (!isDatabaseUnavailable(error) || performance.now() + pauseMs > deadline) throw error;
        onWait(error);
      }
      await wait(pauseMs);
    }
  } finally {
    await database.close();
  }
}
