import { type Pool, runStatement } from '@runhook/database';
import { type Finding, failed, ok, warning } from './finding.ts';

interface Privileges {
  [column: string]: unknown;
  role: string;
  owned: number;
  writable: string[];
  may_create: boolean;
  /** Null while one role is used for everything. */
  retention_days: number | null;
}

// A member of the owner's role may do everything that the owner may, as a superuser may.
const PRIVILEGES = `
  SELECT quote_ident(current_user) AS role,
    (SELECT count(*)::int FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND pg_has_role(c.relowner, 'MEMBER')) AS owned,
    ARRAY(SELECT t.name || ' (' || t.privileges || ')'
      FROM (VALUES ('_prisma_migrations', 'INSERT, UPDATE, DELETE, TRUNCATE'), ('audit_entries', 'UPDATE, TRUNCATE'),
        ('log_retention', 'INSERT, UPDATE, DELETE, TRUNCATE')) AS t (name, privileges)
      WHERE has_table_privilege(t.name, t.privileges)) AS writable,
    has_schema_privilege('public', 'CREATE') AS may_create,
    (SELECT days FROM log_retention) AS retention_days`;

const REMEDY =
  'Give management and the dispatchers separate roles, which migrate creates: docs/upgrading.md, Database roles.';

/** Checks that the role of DATABASE_URL owns no table and can only do what a service needs. */
export async function examinePrivileges(pool: Pool, logRetentionDays: number): Promise<Finding> {
  const [row] = await runStatement<Privileges>(pool, PRIVILEGES, []);
  const { role, owned, writable, may_create, retention_days } = row as Privileges;
  if (owned > 0)
    return failed(
      'privileges',
      `of the role ${role} are those of the owner of ${owned} tables: a service must own none`,
      REMEDY,
    );
  const excessive = [...writable, ...(may_create ? ['CREATE in the schema public'] : [])];
  if (excessive.length > 0)
    return failed('privileges', `of the role ${role} are too many: ${excessive.join(', ')}`, REMEDY);
  if (retention_days !== null && retention_days > logRetentionDays)
    return warning(
      'privileges',
      `of the dispatchers do not allow to drop days within ${retention_days} days, and LOG_RETENTION_DAYS is ${logRetentionDays}`,
      'Run migrate with the same LOG_RETENTION_DAYS.',
    );
  return ok('privileges', `of the role ${role} are those of a service`);
}
