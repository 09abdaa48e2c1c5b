-- A partition of the log may hold several days: its name is <parent>_<first day>_<last day>. A default partition that has
-- grown becomes such a partition (packages/database/src/default-partition.ts).

-- What Prisma's schema cannot say

-- Whether the day in the name has a partition: its own, or one of several days that contains it.
CREATE OR REPLACE FUNCTION "has_day_partition"(parent text, partition_name text) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (
    SELECT FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
    WHERE i.inhparent = parent::regclass
      AND child.relname ~ ('^' || parent || '_[0-9]{8}(_[0-9]{8})?$')
      AND right(partition_name, 8) BETWEEN substr(child.relname, length(parent) + 2, 8) AND right(child.relname, 8))
$$;

-- The size of a default partition in bytes, on all servers where the log is distributed by Citus.
CREATE FUNCTION "default_partition_bytes"(parent text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  bytes bigint;
  is_distributed boolean := false;
BEGIN
  IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
    EXECUTE 'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = $1)'
      INTO is_distributed USING (parent || '_default')::regclass;
  END IF;
  IF NOT is_distributed THEN
    RETURN pg_relation_size((parent || '_default')::regclass);
  END IF;
  EXECUTE 'SELECT citus_relation_size($1)' INTO bytes USING (parent || '_default')::regclass;
  RETURN bytes;
END
$$;

-- Makes one day partition; returns false if the day has one. The default partition is locked while rows of that day move
-- out of it. A default partition over 16 MB is rejected with 55000, because the lock would last too long.
CREATE OR REPLACE FUNCTION "make_day_partition"(parent text, partition_day date) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '200ms' AS $$
DECLARE
  partition_name text := parent || '_' || to_char(partition_day, 'YYYYMMDD');
  default_name text := parent || '_default';
BEGIN
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

-- Drops the partition whose first day this is; returns false if there is none.
CREATE OR REPLACE FUNCTION "drop_day_partition"(parent text, partition_day date) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '200ms' AS $$
DECLARE
  partition_name text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
  SELECT child.relname INTO partition_name
  FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
  WHERE i.inhparent = parent::regclass
    AND child.relname ~ ('^' || parent || '_' || to_char(partition_day, 'YYYYMMDD') || '(_[0-9]{8})?$');
  IF partition_name IS NULL THEN
    RETURN false;
  END IF;
  EXECUTE format('DROP TABLE %I', partition_name);
  RETURN true;
END
$$;
