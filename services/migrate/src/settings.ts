import { queueBackendName } from '@runhook/queue';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

const { logLevel, parsedBy, postgresUrl, wholeNumber } = environmentRules;

interface Environment {
  /** Of the server itself, not of a pooler in transaction mode: the lock that migrations take belongs to a session. */
  DATABASE_URL: string;
  /** A queue on Redis has no schema, and then this may be left out. */
  QUEUE_URL?: string;
  /** How long a database that is not there yet is waited for. */
  MIGRATE_WAIT_SECONDS: number;
  LOG_LEVEL: string;
}

export type MigrateSettings = SettingsOf<Environment>;

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url),
  MIGRATE_WAIT_SECONDS: wholeNumber(0, 3_600).default(60),
  LOG_LEVEL: logLevel().default('info'),
});

/** Throws an `EnvironmentError` with every problem at once. */
export function readSettings(source?: NodeJS.ProcessEnv): MigrateSettings {
  return parseSettings(schema, source);
}
