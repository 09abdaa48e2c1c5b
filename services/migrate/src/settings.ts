import { type DatabaseRoles, isRoleName, roleOfUrl } from '@runhook/database/migrate';
import { queueBackendName } from '@runhook/queue';
import { EnvironmentError, environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

const { logLevel, parsedBy, postgresUrl, integer } = environmentRules;

interface Environment {
  /**
   * URL of an administrator, or of the role that owns the tables. Of the server, not of a pooler in transaction mode: the
   * migrations' advisory lock belongs to a session.
   */
  DATABASE_URL: string;
  /** The services' values of `DATABASE_URL`: each names the service's role and its password. */
  MANAGEMENT_DATABASE_URL?: string;
  DISPATCHER_DATABASE_URL?: string;
  DATABASE_OWNER_ROLE: string;
  /** As for the dispatchers, which cannot drop days within it. */
  LOG_RETENTION_DAYS: number;
  /** May be omitted for a queue on Redis, which has no schema. */
  QUEUE_URL?: string;
  /** Maximum time to wait for a database that is not available yet. */
  MIGRATE_WAIT_SECONDS: number;
  LOG_LEVEL: string;
}

type ParsedSettings = SettingsOf<Environment>;

export type MigrateSettings = Pick<
  ParsedSettings,
  'databaseUrl' | 'queueUrl' | 'migrateWaitSeconds' | 'logLevel' | 'logRetentionDays'
> & {
  /** Absent if the services use the role of `DATABASE_URL`. */
  roles?: DatabaseRoles;
};

const serviceUrl = () => parsedBy((url) => roleOfUrl(url) && url);

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  MANAGEMENT_DATABASE_URL: serviceUrl(),
  DISPATCHER_DATABASE_URL: serviceUrl(),
  DATABASE_OWNER_ROLE: parsedBy(parseRoleName).default('runhook_owner'),
  LOG_RETENTION_DAYS: integer(1, 3_650).default(30),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url),
  MIGRATE_WAIT_SECONDS: integer(0, 3_600).default(60),
  LOG_LEVEL: logLevel().default('info'),
}).and('MANAGEMENT_DATABASE_URL', 'DISPATCHER_DATABASE_URL');

/** Reads the settings. Throws an `EnvironmentError` with all problems. */
export function readSettings(source?: NodeJS.ProcessEnv): MigrateSettings {
  const { managementDatabaseUrl, dispatcherDatabaseUrl, databaseOwnerRole, ...settings } = parseSettings(
    schema,
    source,
  );
  if (managementDatabaseUrl === undefined || dispatcherDatabaseUrl === undefined) return settings;
  const [management, dispatcher] = [roleOfUrl(managementDatabaseUrl), roleOfUrl(dispatcherDatabaseUrl)];
  const names = [databaseOwnerRole, management.name, dispatcher.name, roleOfDatabaseUrl(settings)];
  if (new Set(names.slice(0, 3)).size < 3 || names.slice(1, 3).includes(names[3] ?? ''))
    throw new EnvironmentError([
      'MANAGEMENT_DATABASE_URL, DISPATCHER_DATABASE_URL and DATABASE_OWNER_ROLE must name different roles, and the services another one than DATABASE_URL',
    ]);
  return { ...settings, roles: { owner: databaseOwnerRole, management, dispatcher } };
}

const roleOfDatabaseUrl = ({ databaseUrl }: { databaseUrl: string }) =>
  decodeURIComponent(new URL(databaseUrl).username);

function parseRoleName(name: string): string {
  if (!isRoleName(name)) throw new Error('must be the name of a role');
  return name;
}
