-- The services do not own the tables. Functions that run with the rights of their owner create, convert and drop day partitions.
-- They accept the tables of the log only, and from a service only the days that it has to change. `migrate` grants EXECUTE to the
-- role of the dispatchers (packages/database/src/roles).

-- CreateTable
CREATE TABLE "log_retention" (
    "id" BOOLEAN NOT NULL DEFAULT true,
    "days" INTEGER NOT NULL,

    CONSTRAINT "log_retention_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "log_retention_single" CHECK ("id")
);

-- Not expressible in Prisma's schema

CREATE FUNCTION "require_log_table"("parent" text) RETURNS void
LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
BEGIN
  IF parent IS NULL OR parent NOT IN ('events', 'deliveries', 'attempts') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('%L is not a table of the log', parent);
  END IF;
END
$$;

-- Makes one day partition; returns false if the day has one. The default partition is locked while rows of that day move
-- out of it. A default partition over 16 MB is rejected with 55000, because the lock would last too long. A session that
-- is not a member of the owner can make the days from the day before yesterday to eight days ahead.
CREATE OR REPLACE FUNCTION "make_day_partition"(parent text, partition_day date) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '200ms' AS $$
DECLARE
  partition_name text := parent || '_' || to_char(partition_day, 'YYYYMMDD');
  default_name text := parent || '_default';
  today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
  PERFORM require_log_table(parent);
  IF partition_day IS NULL OR NOT isfinite(partition_day) OR (
    partition_day NOT BETWEEN today - 2 AND today + 8 AND NOT pg_has_role(session_user, current_user, 'MEMBER')
  ) THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('no partition is due for the day %L', partition_day);
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
  IF has_day_partition(parent, partition_name) THEN
    RETURN false;
  END IF;
  IF default_partition_bytes(parent) > 16 * 1024 * 1024 THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = default_name || ' is too large to move a day out of it';
  END IF;
  EXECUTE format(
    'CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', partition_name, parent);
  EXECUTE format('LOCK TABLE ONLY %I IN SHARE UPDATE EXCLUSIVE MODE', parent);
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', default_name);
  EXECUTE format(
    'WITH moved AS (DELETE FROM %I WHERE "day" = %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
    default_name, partition_day, partition_name);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
    parent, partition_name, partition_day, partition_day + 1);
  RETURN true;
END
$$;

-- Drops the partition whose first day this is; returns false if there is none. A session that is not a member of the owner
-- cannot drop a day within the retention.
CREATE OR REPLACE FUNCTION "drop_day_partition"(parent text, partition_day date) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '200ms' AS $$
DECLARE
  partition_name text;
  retention_days integer := coalesce((SELECT days FROM log_retention), 30);
BEGIN
  PERFORM require_log_table(parent);
  PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
  SELECT child.relname INTO partition_name
  FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
  WHERE i.inhparent = parent::regclass
    AND child.relname ~ ('^' || parent || '_' || to_char(partition_day, 'YYYYMMDD') || '(_[0-9]{8})?$');
  IF partition_name IS NULL THEN
    RETURN false;
  END IF;
  IF to_date(right(partition_name, 8), 'YYYYMMDD') >= (now() AT TIME ZONE 'UTC')::date - retention_days
    AND NOT pg_has_role(session_user, current_user, 'MEMBER')
  THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
      MESSAGE = format('%s is within the retention of %s days', partition_name, retention_days),
      HINT = 'Run migrate with the LOG_RETENTION_DAYS of the dispatchers.';
  END IF;
  EXECUTE format('DROP TABLE %I', partition_name);
  RETURN true;
END
$$;

-- The steps that convert a default partition (packages/database/src/default-partition.ts). The caller takes the advisory lock.

-- Returns the name of the constraint that an unfinished conversion has left on a default partition.
CREATE FUNCTION "default_partition_constraint"("parent" text) RETURNS text
LANGUAGE sql VOLATILE
SET search_path = public, pg_temp AS $$
  SELECT conname::text FROM pg_constraint
  WHERE conrelid = (parent || '_default')::regclass AND conname ~ ('^' || parent || '_default_[0-9]{8}_[0-9]{8}$')
$$;

-- Adds the constraint of a range of days, both included, without a scan; replaces that of an unfinished conversion.
CREATE FUNCTION "constrain_default_partition"("parent" text, "first_day" date, "last_day" date) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = public, pg_temp
SET lock_timeout = '100ms' AS $$
DECLARE
  default_name text := parent || '_default';
  existing text;
BEGIN
  PERFORM require_log_table(parent);
  IF (first_day <= last_day AND isfinite(first_day) AND isfinite(last_day)) IS NOT TRUE THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('%L to %L is not a range of days', first_day, last_day);
  END IF;
  existing := default_partition_constraint(parent);
  -- Two statements: Citus rejects an ALTER TABLE that adds a constraint and does anything else.
  IF existing IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', default_name, existing);
  END IF;
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (day >= %L::date AND day < %L::date) NOT VALID', default_name,
    default_name || to_char(first_day, '_YYYYMMDD') || to_char(last_day, '_YYYYMMDD'), first_day, last_day + 1);
END
$$;

CREATE FUNCTION "validate_default_partition"("parent" text) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = public, pg_temp AS $$
DECLARE
  existing text;
BEGIN
  PERFORM require_log_table(parent);
  existing := default_partition_constraint(parent);
  IF existing IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %I VALIDATE CONSTRAINT %I', parent || '_default', existing);
  END IF;
END
$$;

-- Attaches the constrained table by its range, and a new default partition with the same privileges. Returns the name of the
-- new partition, or null if another session has converted the table meanwhile.
CREATE FUNCTION "swap_default_partition"("parent" text) RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = public, pg_temp AS $$
DECLARE
  old_name text := parent || '_default';
  next_name text := parent || '_default_next';
  range_constraint text;
  partition_name text;
  first_day date;
  last_day date;
  privilege text;
BEGIN
  PERFORM require_log_table(parent);
  range_constraint := default_partition_constraint(parent);
  IF range_constraint IS NULL THEN
    RETURN NULL;
  END IF;
  partition_name := parent || '_' || right(range_constraint, 17);
  first_day := to_date(left(right(range_constraint, 17), 8), 'YYYYMMDD');
  last_day := to_date(right(range_constraint, 8), 'YYYYMMDD');
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', next_name, parent);
  FOR privilege IN
    SELECT format('GRANT %s ON %I TO %s', acl.privilege_type, next_name, acl.grantee::regrole)
    FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) acl
    WHERE c.oid = old_name::regclass AND acl.grantee NOT IN (0, c.relowner)
  LOOP
    EXECUTE privilege;
  END LOOP;
  -- The constraint rejects updates of these rows since it was added, so no update can miss a row that moves.
  EXECUTE format(
    'WITH moved AS (DELETE FROM %I WHERE day < %L OR day > %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
    old_name, first_day, last_day, next_name);
  EXECUTE format('ALTER TABLE %I VALIDATE CONSTRAINT %I', old_name, range_constraint);
  -- Other sessions wait for these locks.
  PERFORM set_config('lock_timeout', '100ms', true);
  EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, old_name);
  EXECUTE format('ALTER TABLE %I RENAME TO %I', old_name, partition_name);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
    parent, partition_name, first_day, last_day + 1);
  EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', partition_name, range_constraint);
  EXECUTE format('ALTER TABLE %I RENAME TO %I', next_name, old_name);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', parent, old_name);
  RETURN partition_name;
END
$$;

REVOKE EXECUTE ON FUNCTION "make_day_partition"(text, date), "drop_day_partition"(text, date),
  "constrain_default_partition"(text, date, date), "validate_default_partition"(text), "swap_default_partition"(text),
  "ensure_day_partitions"(date, date), "drop_day_partitions"(date) FROM PUBLIC;
