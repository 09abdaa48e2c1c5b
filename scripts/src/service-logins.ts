import { randomBytes } from 'node:crypto';
import { type DatabaseRoles, grantPrivileges, migrate, prepareRoles } from '@runhook/database/migrate';
import { migrateQueue, queueBackendName } from '@runhook/queue';
import type { StartSettings } from './settings.ts';

const PASSWORD_BYTES = 24;

/** Logins of the services to the embedded PostgreSQL. */
export interface ServiceLogins {
  /** Null for an external database, which the services use with the login of its URL. */
  roles: DatabaseRoles | null;
  /** Returns the URL of the database, or of the queue in it, with the login of the service. */
  urlOf(service: 'management' | 'dispatcher', url: string): string;
}

/** Generates passwords for each start: migrations set them, so they need not be stored. */
export function createServiceLogins({ databaseUrl }: StartSettings): ServiceLogins {
  if (databaseUrl !== null) return { roles: null, urlOf: (_, url) => url };
  const createRole = (name: string) => ({
    name,
    password: randomBytes(PASSWORD_BYTES).toString('base64url'),
  });
  const roles = {
    owner: 'runhook_owner',
    management: createRole('runhook_management'),
    dispatcher: createRole('runhook_dispatcher'),
  };
  return {
    roles,
    urlOf(service, url) {
      if (!url.startsWith('postgres')) return url;
      const { name: username, password } = roles[service];
      return Object.assign(new URL(url), { username, password }).href;
    },
  };
}

/** Does what the program `migrate` does before the services of a release. Returns the names of the applied migrations. */
export async function migrateStores(
  {
    databaseUrl,
    queueUrl,
    logRetentionDays,
  }: { databaseUrl: string; queueUrl: string; logRetentionDays: number },
  { roles }: ServiceLogins,
): Promise<string[]> {
  const ownerUrl = roles === null ? databaseUrl : await prepareRoles(databaseUrl, roles);
  const applied = await migrate(ownerUrl);
  if (roles !== null) await grantPrivileges(ownerUrl, roles, logRetentionDays);
  if (queueBackendName(queueUrl) === 'Redis') return applied;
  const isInDatabase = roles !== null && queueUrl === databaseUrl;
  await (isInDatabase
    ? migrateQueue(ownerUrl, [roles.management.name, roles.dispatcher.name])
    : migrateQueue(queueUrl));
  return applied;
}
