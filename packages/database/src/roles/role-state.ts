import type pg from 'pg';

/** State of the roles in the database, and the rights of the role of the session. */
export interface RoleState extends pg.QueryResultRow {
  /** Quoted name of the database. */
  database: string;
  user: string;
  isSuperuser: boolean;
  /** Whether the session may work as the owner. */
  isMember: boolean;
  /** Names of the roles that exist, and of those that the session may change. */
  existing: string[];
  alterable: string[];
  ownerMayCreate: boolean;
  ownerMayCreateSchema: boolean;
  publicMayCreate: boolean;
  /** Whether everyone, or both services, may use the schema `public`. */
  mayUse: boolean;
  /** Whether everyone, or both services, may create temporary tables. */
  mayUseTemporary: boolean;
}

// $1: names of the owner, of management's and of the dispatchers' role. Since PostgreSQL 16 a role with CREATEROLE changes
// only roles for which it has the ADMIN option, and membership without the SET option does not allow SET ROLE.
export const ROLE_STATE = `
  WITH me AS (SELECT * FROM pg_roles WHERE rolname = current_user),
    named AS (SELECT oid, rolname FROM pg_roles WHERE rolname = ANY ($1::text[])),
    owner AS (SELECT oid FROM pg_roles WHERE rolname = ($1::text[])[1]),
    services AS (SELECT oid FROM named WHERE rolname = ANY (($1::text[])[2:3]))
  SELECT quote_ident(current_database()) AS database, me.rolname::text AS user, me.rolsuper AS "isSuperuser",
    coalesce((SELECT pg_has_role(owner.oid, CASE WHEN current_setting('server_version_num')::int >= 160000
      THEN 'SET' ELSE 'MEMBER' END) FROM owner), false) AS "isMember",
    ARRAY(SELECT rolname::text FROM named) AS existing,
    ARRAY(SELECT rolname::text FROM named WHERE me.rolsuper OR (me.rolcreaterole AND (
      current_setting('server_version_num')::int < 160000 OR pg_has_role(named.oid, 'MEMBER WITH ADMIN OPTION')
    ))) AS alterable,
    coalesce((SELECT has_schema_privilege(oid, 'public', 'CREATE') FROM owner), false) AS "ownerMayCreate",
    coalesce((SELECT has_database_privilege(oid, current_database(), 'CREATE') FROM owner), false)
      AS "ownerMayCreateSchema",
    has_schema_privilege('public', 'public', 'CREATE') AS "publicMayCreate",
    has_schema_privilege('public', 'public', 'USAGE') OR (
      SELECT count(*) = 2 FROM services WHERE has_schema_privilege(oid, 'public', 'USAGE')) AS "mayUse",
    has_database_privilege('public', current_database(), 'TEMPORARY') OR (
      SELECT count(*) = 2 FROM services WHERE has_database_privilege(oid, current_database(), 'TEMPORARY'))
      AS "mayUseTemporary"
  FROM me`;

/**
 * Statements that make $1 the owner of Runhook's objects: those in `public` that have the owner of the table `accounts`, and
 * the schema of BullMQ. Objects of extensions are left alone, and sequences of columns follow their tables.
 */
export const OBJECTS_TO_TRANSFER = `
  WITH schemas AS (
    SELECT n.oid, n.nspname, coalesce(
      (SELECT relowner FROM pg_class WHERE oid = to_regclass('public.accounts') AND n.nspname = 'public'),
      CASE n.nspname WHEN 'bullmq' THEN n.nspowner END) AS owner
    FROM pg_namespace n WHERE n.nspname IN ('public', 'bullmq')
  ), target AS (
    SELECT schemas.*, quote_ident($1::text) AS to_owner FROM schemas
    WHERE owner <> (SELECT oid FROM pg_roles WHERE rolname = $1::text)
  )
  SELECT command FROM (
    SELECT 1 AS step, format('ALTER SCHEMA bullmq OWNER TO %s', to_owner) AS command
    FROM target WHERE nspname = 'bullmq'
    UNION ALL
    SELECT 2, format('ALTER TYPE %s OWNER TO %s', t.oid::regtype, to_owner)
    FROM target JOIN pg_type t ON t.typnamespace = target.oid AND t.typowner = target.owner
    WHERE t.typtype IN ('e', 'd') AND NOT EXISTS (
      SELECT FROM pg_depend WHERE classid = 'pg_type'::regclass AND objid = t.oid AND deptype = 'e')
    UNION ALL
    SELECT 3, format('ALTER TABLE %s OWNER TO %s', c.oid::regclass, to_owner)
    FROM target JOIN pg_class c ON c.relnamespace = target.oid AND c.relowner = target.owner
    WHERE c.relkind IN ('r', 'p', 'v', 'S') AND NOT EXISTS (
      SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid
        AND deptype IN ('e', 'a', 'i') AND (c.relkind = 'S' OR deptype = 'e'))
    UNION ALL
    SELECT 4, format('ALTER ROUTINE %s OWNER TO %s', p.oid::regprocedure, to_owner)
    FROM target JOIN pg_proc p ON p.pronamespace = target.oid AND p.proowner = target.owner
    WHERE NOT EXISTS (
      SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
  ) AS commands ORDER BY step`;
