import pg from 'pg';
import { withClient } from '../with-client.ts';
import { DISPATCHER_FUNCTIONS, type ServiceName, TABLE_PRIVILEGES } from './privileges.ts';
import type { DatabaseRoles } from './roles.ts';

/**
 * Gives the roles of the services exactly the privileges of {@link TABLE_PRIVILEGES}, in one transaction, so that running
 * services are not interrupted, and stores the retention within which dispatchers cannot drop days. Must follow each
 * migration: new tables have no privileges. Safe to repeat, and to run concurrently.
 * @param ownerUrl a URL of {@link prepareRoles}
 */
export async function grantPrivileges(
  ownerUrl: string,
  roles: Pick<DatabaseRoles, ServiceName>,
  logRetentionDays: number,
): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('runhook.prepare_roles'))`);
    const { rows: relations } = await client.query<{ name: string }>(SELECT_OWN_RELATIONS);
    const { rows: sequences } = await client.query<{ name: string; table: string }>(SELECT_SEQUENCES);
    const all = relations.map(({ name }) => name).join(', ');
    for (const service of ['management', 'dispatcher'] as const) {
      const role = pg.escapeIdentifier(roles[service].name);
      // Includes the privileges on columns, and on partitions by the rules of earlier releases.
      await client.query(`REVOKE ALL ON ${all} FROM ${role}`);
      for (const statement of grants(service, role, sequences)) await client.query(statement);
    }
    await client.query(STORE_RETENTION, [logRetentionDays]);
    await client.query('COMMIT');
  });
}

const functions = DISPATCHER_FUNCTIONS.join(', ');

function grants(service: ServiceName, role: string, sequences: readonly { name: string; table: string }[]) {
  const ofTables = Object.entries(TABLE_PRIVILEGES).flatMap(([table, { [service]: privileges }]) =>
    privileges === undefined ? [] : [`GRANT ${privileges} ON ${table} TO ${role}`],
  );
  const used = sequences.filter(({ table }) => TABLE_PRIVILEGES[table]?.[service]?.includes('INSERT'));
  const ofSequences = used.map(({ name }) => `GRANT USAGE ON SEQUENCE ${name} TO ${role}`);
  // PUBLIC has the right after a restore without privileges.
  const ofFunctions = [`REVOKE EXECUTE ON FUNCTION ${functions} FROM PUBLIC, ${role}`];
  if (service === 'dispatcher') ofFunctions.push(`GRANT EXECUTE ON FUNCTION ${functions} TO ${role}`);
  return [...ofTables, ...ofSequences, ...ofFunctions];
}

const SELECT_OWN_RELATIONS = `
  SELECT oid::regclass::text AS name FROM pg_class
  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S') AND relowner = current_user::regrole`;

const SELECT_SEQUENCES = `
  SELECT s.oid::regclass::text AS name, t.relname::text AS table
  FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_class t ON t.oid = d.refobjid
  WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    AND t.relnamespace = 'public'::regnamespace`;

const STORE_RETENTION = `
  INSERT INTO log_retention (days) VALUES ($1) ON CONFLICT (id) DO UPDATE SET days = EXCLUDED.days
  WHERE log_retention.days <> EXCLUDED.days`;
