-- Lets days of the log come and go while somebody reads it for long. Whoever waits for a table's strongest lock has
-- everybody behind him who comes later, each delivery included: so nothing here waits for longer than a moment, and
-- each partition is a transaction of its own, to be tried again.

-- By what is committed: what a session remembers of names may be older than the lock it has just waited for.
CREATE FUNCTION "has_day_partition"(parent text, partition_name text) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (
    SELECT FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
    WHERE i.inhparent = parent::regclass AND child.relname = partition_name)
$$;

-- Makes one day partition; answers false if it is there. Only what follows the creation stands in anybody's way: the
-- default partition is locked while rows of that day, if any wait in it, move out of it. One that holds so much that
-- this would take long is left as it is, with 55000: its days stay there until their retention is over.
CREATE FUNCTION "make_day_partition"(parent text, partition_day date) RETURNS boolean
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
  IF pg_relation_size(default_name::regclass) > 16 * 1024 * 1024 THEN
    RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = default_name || ' holds too much to make a day out of it';
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

-- Drops one day partition; answers false if it is gone.
CREATE FUNCTION "drop_day_partition"(parent text, partition_day date) RETURNS boolean
LANGUAGE plpgsql
SET lock_timeout = '200ms' AS $$
DECLARE
  partition_name text := parent || '_' || to_char(partition_day, 'YYYYMMDD');
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
  IF NOT has_day_partition(parent, partition_name) THEN
    RETURN false;
  END IF;
  EXECUTE format('DROP TABLE %I', partition_name);
  RETURN true;
END
$$;

-- The days from first_day to last_day that are missing, at once: for a log that nobody writes to yet, and for the
-- dispatchers of the release before. What is waited for fails it as a whole.
CREATE OR REPLACE FUNCTION "ensure_day_partitions"(first_day date, last_day date) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  parent text;
  partition_day date;
  made integer := 0;
BEGIN
  FOREACH parent IN ARRAY ARRAY['events', 'deliveries', 'attempts'] LOOP
    FOR partition_day IN SELECT generate_series(first_day, last_day, interval '1 day')::date LOOP
      IF make_day_partition(parent, partition_day) THEN
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END
$$;
