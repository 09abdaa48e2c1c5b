import { setTimeout as wait } from 'node:timers/promises';
import {
  describeConnectionProblem,
  isDatabaseUnavailable,
  openDatabase,
  runStatement,
} from '@runhook/database';
import { disableJit, migrate, rewriteLog } from '@runhook/database/migrate';
import { migrateQueue, queueBackendName } from '@runhook/queue';
import { environmentRules, type Logger, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

/**
 * Updates the database to the schema of this release, and BullMQ's schema if the queue is in PostgreSQL. Idempotent;
 * migrations of concurrent runs are serialized. Throws the first error; completed steps stay, and the next run
 * continues.
 */
export async function migrateAll(settings: MigrateSettings, logger: Pick<Logger, 'info' | 'warn'>) {
  const { databaseUrl, queueUrl, migrateWaitSeconds } = settings;
  await waitForDatabase(databaseUrl, {
    waitMs: migrateWaitSeconds * 1_000,
    onWait: (error) => logger.warn({ reason: describeConnectionProblem(error) }, 'waiting for the database'),
  });
  const applied = await migrate(databaseUrl, {
    onLockWait: (err) =>
      logger.warn({ err }, 'a migration waits for a lock of another session and is tried again'),
  });
  logger.info({ applied }, applied.length > 0 ? 'migrations applied' : 'the schema is up to date');
  await rewriteOldRows(databaseUrl, logger);
  if (!(await disableJit(databaseUrl)))
    logger.warn(
      {},
      'JIT stays on for connections of a pooler: the role may not change its own settings; set jit = off for the role or the server',
    );
  if (queueUrl === undefined) return;
  const queueSchemaVersion = await migrateQueue(queueUrl);
  if (queueSchemaVersion !== null)
    logger.info({ queueSchemaVersion }, 'the schema of the queue is up to date');
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

const { logLevel, parsedBy, postgresUrl, integer } = environmentRules;

interface Environment {
  /** URL of the server, not of a pooler in transaction mode: the migrations' advisory lock belongs to a session. */
  DATABASE_URL: string;
  /** May be omitted for a queue on Redis, which has no schema. */
  QUEUE_URL?: string;
  /** Maximum time to wait for a database that is not available yet. */
  MIGRATE_WAIT_SECONDS: number;
  LOG_LEVEL: string;
}

export type MigrateSettings = SettingsOf<Environment>;

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url),
  MIGRATE_WAIT_SECONDS: integer(0, 3_600).default(60),
  LOG_LEVEL: logLevel().default('info'),
});

/** Reads the settings. Throws an `EnvironmentError` with all problems. */
export function readSettings(source?: NodeJS.ProcessEnv): MigrateSettings {
  return parseSettings(schema, source);
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
