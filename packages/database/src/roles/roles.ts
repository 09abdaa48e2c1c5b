import pg from 'pg';
import { withClient } from '../with-client.ts';
import { OBJECTS_TO_TRANSFER, ROLE_STATE, type RoleState } from './role-state.ts';
import { scramVerifier } from './scram.ts';

export interface ServiceRole {
  name: string;
  /** Null if the role logs in without one, such as with a certificate. */
  password: string | null;
}

/** The role that owns tables, functions and the queue's schema, as which migrate works, and those of the services. */
export interface DatabaseRoles {
  owner: string;
  management: ServiceRole;
  dispatcher: ServiceRole;
}

/** The database has not the roles, and the role of the URL may not create them. The message has the SQL that does. */
export class RolesMissingError extends Error {
  readonly code = 'roles_missing';
}

const ROLE_NAME = /^[a-z_][a-z0-9_$]{0,62}$/;
const PRINTABLE_ASCII = /^[ -~]+$/;

/** Returns the role of a service's URL. Throws an error whose message contains no part of the URL. */
export function roleOfUrl(url: string): ServiceRole {
  const { username, password } = new URL(url);
  const role = { name: decodeURIComponent(username), password: decodeURIComponent(password) || null };
  if (!isRoleName(role.name))
    throw new Error('must name a role of lower-case letters, digits and underscores');
  if (role.password !== null && !PRINTABLE_ASCII.test(role.password))
    throw new Error('must have a password of printable ASCII characters');
  return role;
}

export function isRoleName(name: string): boolean {
  return ROLE_NAME.test(name);
}

/**
 * Creates the roles that are missing, sets the passwords of the services, and makes the owner the owner of all objects of
 * Runhook in the schemas `public` and `bullmq`. Safe to repeat, and to run concurrently.
 * @param url of an administrator, or of the role that owned the objects so far
 * @returns the URL with which sessions work as the owner
 * @throws RolesMissingError when the role of the URL lacks a permission
 */
export async function prepareRoles(url: string, roles: DatabaseRoles): Promise<string> {
  await withClient(url, async (client) => {
    await client.query(`BEGIN; SET LOCAL lock_timeout = '10s'`);
    let statements: SetupStatement[] = [];
    try {
      await client.query(`SELECT pg_advisory_xact_lock(hashtext('runhook.prepare_roles'))`);
      const names = [roles.owner, roles.management.name, roles.dispatcher.name];
      const { rows } = await client.query<RoleState>(ROLE_STATE, [names]);
      statements = setupStatements(rows[0] as RoleState, roles);
      for (const { sql } of statements) await client.query(sql);
      // A GRANT or REVOKE without the right to it may have no effect and report only a warning.
      const { rows: after } = await client.query<RoleState>(ROLE_STATE, [names]);
      const remaining = setupStatements(after[0] as RoleState, roles).find(({ shown }) => shown !== null);
      if (remaining) throw missingRights(roles, statements, new Error(`no effect: ${remaining.shown}`));
      await transferObjects(client, roles.owner);
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK');
      if ((error as { code?: string }).code !== INSUFFICIENT_PRIVILEGE) throw error;
      throw missingRights(roles, statements, error as Error);
    }
  });
  return urlAsOwner(url, roles.owner);
}

/** Returns the URL with which a member of the owner's role works as the owner. */
export function urlAsOwner(url: string, owner: string): string {
  const asOwner = new URL(url);
  const options = asOwner.searchParams.get('options');
  asOwner.searchParams.set('options', [options, `-c role=${owner}`].filter(Boolean).join(' '));
  return asOwner.href;
}

const INSUFFICIENT_PRIVILEGE = '42501';

interface SetupStatement {
  sql: string;
  /** The statement for an administrator, without the password; null if the services work without the statement. */
  shown: string | null;
}

function setupStatements(state: RoleState, roles: DatabaseRoles): SetupStatement[] {
  const owner = pg.escapeIdentifier(roles.owner);
  const statements: SetupStatement[] = [];
  const add = (isNeeded: boolean, sql: string) => {
    if (isNeeded) statements.push({ sql, shown: sql });
  };
  add(!state.existing.includes(roles.owner), `CREATE ROLE ${owner} NOLOGIN`);
  for (const service of ['management', 'dispatcher'] as const)
    statements.push(...serviceStatements(state, service, roles[service]));
  add(!state.isSuperuser && !state.isMember, `GRANT ${owner} TO ${pg.escapeIdentifier(state.user)}`);
  const services = [roles.management, roles.dispatcher]
    .map(({ name }) => pg.escapeIdentifier(name))
    .join(', ');
  add(!state.ownerMayCreate, `GRANT USAGE, CREATE ON SCHEMA public TO ${owner}`);
  add(!state.ownerMayCreateSchema, `GRANT CREATE ON DATABASE ${state.database} TO ${owner}`);
  add(!state.mayUse, `GRANT USAGE ON SCHEMA public TO ${services}`);
  add(state.publicMayCreate, 'REVOKE CREATE ON SCHEMA public FROM PUBLIC');
  // BullMQ's functions use temporary tables.
  add(!state.mayUseTemporary, `GRANT TEMPORARY ON DATABASE ${state.database} TO ${services}`);
  return statements;
}

function serviceStatements(
  { existing, alterable, database }: RoleState,
  service: 'management' | 'dispatcher',
  { name, password }: ServiceRole,
): SetupStatement[] {
  const role = pg.escapeIdentifier(name);
  const withoutJit = `ALTER ROLE ${role} IN DATABASE ${database} SET jit = off`;
  const withPassword = password === null ? '' : ` PASSWORD ${pg.escapeLiteral(scramVerifier(password))}`;
  const shownPassword =
    password === null ? '' : ` PASSWORD '<the password in ${service.toUpperCase()}_DATABASE_URL>'`;
  if (!existing.includes(name))
    return [
      { sql: `CREATE ROLE ${role} LOGIN${withPassword}`, shown: `CREATE ROLE ${role} LOGIN${shownPassword}` },
      { sql: withoutJit, shown: withoutJit },
    ];
  // The role of an administrator whom this role cannot change has its password already.
  if (!alterable.includes(name)) return [];
  return [
    { sql: `ALTER ROLE ${role} LOGIN${withPassword}`, shown: null },
    { sql: withoutJit, shown: null },
  ];
}

/** Changes the owner of each object that belongs to the owner of the tables so far. */
async function transferObjects(client: pg.Client, owner: string): Promise<void> {
  const { rows } = await client.query<{ command: string }>(OBJECTS_TO_TRANSFER, [owner]);
  for (const { command } of rows) await client.query(command);
}

function missingRights(
  { owner }: DatabaseRoles,
  statements: readonly SetupStatement[],
  cause: Error,
): RolesMissingError {
  const shown = statements.flatMap(({ shown }) => (shown === null ? [] : [`${shown};`]));
  const reassign = `REASSIGN OWNED BY <the owner of the tables so far> TO ${pg.escapeIdentifier(owner)};`;
  return new RolesMissingError(
    `The role of DATABASE_URL may not prepare the roles of the services (${cause.message}). An administrator of the database must run, connected to it:\n\n` +
      `${(shown.length > 0 ? shown : [reassign]).join('\n')}\n\nThen run migrate again.`,
    { cause },
  );
}
