import { workerUrls } from './citus-cluster.ts';

/** Roles of the services on the servers of tests. Their names differ from the defaults, which an external server may have. */
export const TEST_ROLES = {
  owner: 'runhook_test_owner',
  management: { name: 'runhook_test_management', password: 'management-secret' },
  dispatcher: { name: 'runhook_test_dispatcher', password: 'dispatcher-secret' },
} as const;

type ServiceName = 'management' | 'dispatcher';

/** URLs with which the services log in to a test's database. */
export interface ServiceUrls {
  managementUrl: string;
  dispatcherUrl: string;
}

/** Default of the services. */
const LOG_RETENTION_DAYS = 30;

/**
 * Brings a database to the schema of this release, with the queue's, for services with {@link TEST_ROLES}; without roles where
 * tables are distributed.
 */
export async function prepareDatabase(url: string): Promise<void> {
  // Imported here, so that tests that only need a receiver do not load the migration engine.
  const { grantPrivileges, migrate, prepareRoles } = await import('@runhook/database/migrate');
  if (workerUrls().length > 0) {
    await migrate(url);
    await prepareQueue(url);
    return;
  }
  const ownerUrl = await prepareRoles(url, TEST_ROLES);
  await migrate(ownerUrl);
  await grantPrivileges(ownerUrl, TEST_ROLES, LOG_RETENTION_DAYS);
  await prepareQueue(ownerUrl);
}

/** Creates the objects of a queue, for services with {@link TEST_ROLES} as {@link prepareDatabase} does. */
export async function prepareQueue(url: string): Promise<void> {
  const { migrateQueue } = await import('@runhook/queue');
  const { management, dispatcher } = TEST_ROLES;
  await migrateQueue(url, workerUrls().length > 0 ? [] : [management.name, dispatcher.name]);
}

/**
 * Returns the URLs of the services for the URL of a prepared database. Where tables are distributed, they are the same URL:
 * Citus would need the passwords of the roles on each server.
 */
export function serviceUrls(url: string): ServiceUrls {
  if (workerUrls().length > 0) return { managementUrl: url, dispatcherUrl: url };
  const urlOf = ({ name, password }: { name: string; password: string }) =>
    Object.assign(new URL(url), { username: name, password }).href;
  return { managementUrl: urlOf(TEST_ROLES.management), dispatcherUrl: urlOf(TEST_ROLES.dispatcher) };
}

/** Name prefix of the databases whose services have the roles. */
export const TEST_DATABASE_PREFIX = 'runhook_test_';

/**
 * Returns the environment of a service with the login of its role in place of the superuser's, in each URL of a test's
 * database.
 */
export function withServiceLogin<Environment extends Record<string, string>>(
  service: ServiceName,
  environment: Environment,
): Environment {
  const entries = Object.entries(environment).map(([name, value]) => {
    if (!/^(DATABASE|QUEUE)_URL$/.test(name) || !value.startsWith('postgres')) return [name, value];
    if (!new URL(value).pathname.startsWith(`/${TEST_DATABASE_PREFIX}`)) return [name, value];
    return [name, serviceUrls(value)[`${service}Url`]];
  });
  return Object.fromEntries(entries);
}
