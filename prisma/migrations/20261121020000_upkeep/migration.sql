-- What the dispatcher's upkeep needs: to find what fell out of the queue, and to let old days go.

-- Pending deliveries by when their next attempt is due; fan-out sets the time of the first.
CREATE INDEX "deliveries_due_idx" ON "deliveries" ("next_attempt_at") WHERE "status" = 'pending';

-- Events that management committed and no dispatcher has fanned out.
CREATE INDEX "events_not_fanned_out_idx" ON "events" ("created_at") WHERE "fanned_out_at" IS NULL;

-- Drops the day partitions before first_kept_day, and rows of such days that wait in the default partitions.
-- Answers how many partitions it dropped. The lock makes callers take turns with ensure_day_partitions.
CREATE FUNCTION "drop_day_partitions"(first_kept_day date) RETURNS integer
LANGUAGE plpgsql
-- Whoever waits for the table must not be kept behind a wait of ours: better to fail and be called again.
SET lock_timeout = '2s' AS $$
DECLARE
  parent text;
  partition_name text;
  dropped integer := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
  FOREACH parent IN ARRAY ARRAY['attempts', 'deliveries', 'events'] LOOP
    FOR partition_name IN
      SELECT child.relname FROM pg_inherits i
      JOIN pg_class child ON child.oid = i.inhrelid
      WHERE i.inhparent = parent::regclass
        AND child.relname ~ ('^' || parent || '_[0-9]{8}$')
        AND to_date(right(child.relname, 8), 'YYYYMMDD') < first_kept_day
      ORDER BY child.relname
    LOOP
      EXECUTE format('DROP TABLE %I', partition_name);
      dropped := dropped + 1;
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE "day" < %L', parent || '_default', first_kept_day);
  END LOOP;
  RETURN dropped;
END
$$;
