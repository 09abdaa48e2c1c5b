-- Which events nobody has fanned out is known without being written into the log of PostgreSQL: a crash empties open_events, and
-- what was in it is found again in the log of events (docs/adr/0057-open-events-are-found-again.md).

-- AlterTable
ALTER TABLE "events"
  ADD COLUMN "unmatched" BOOLEAN,
  ADD COLUMN "unfinished" TEXT;

-- CreateTable
CREATE TABLE "open_events_checkpoint" (
    "id" BOOLEAN NOT NULL DEFAULT true,
    "at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "open_events_checkpoint_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "open_events_checkpoint_one_row" CHECK ("id")
);

-- CreateTable
CREATE UNLOGGED TABLE "open_events_whole" (
    "id" BOOLEAN NOT NULL DEFAULT true,

    CONSTRAINT "open_events_whole_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "open_events_whole_one_row" CHECK ("id")
);

-- CreateIndex
-- Some bytes for each megabyte of events: which ones are of a time is asked after a crash.
-- allows require-concurrent-index-creation: services stand still for the migrations of this release.
CREATE INDEX "events_created_at_idx" ON "events" USING BRIN ("created_at");

-- What Prisma's schema cannot say

-- An index of an empty table has its first megabyte summed up already, and would be told of each row in it.
SELECT brin_desummarize_range(i.indexrelid, 0)
FROM pg_partition_tree('events') p JOIN pg_index i ON i.indrelid = p.relid
  JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE p.isleaf AND a.amname = 'brin' AND pg_relation_size(p.relid) = 0;

ALTER TABLE "open_events" SET UNLOGGED;
INSERT INTO "open_events_whole" DEFAULT VALUES;
-- What is open now says so itself, until somebody fans it out; of what comes after, it is known when it was committed.
UPDATE "events" e SET "unfinished" = 'paged' FROM "open_events" o
  WHERE e."day" = o."day" AND e."id" = o."event_id" AND e."account_id" = o."account_id";
INSERT INTO "open_events_checkpoint" ("at") VALUES (now());

-- Few: events of very many deliveries while they are committed, and what has been open for long.
-- allows require-concurrent-index-creation: services stand still for the migrations of this release.
CREATE INDEX "events_unfinished_idx" ON "events" ("day") WHERE "unfinished" IS NOT NULL;

-- Makes one day partition; answers false if it is there. Only what follows the creation stands in anybody's way: the
-- default partition is locked while rows of that day, if any wait in it, move out of it. One that holds so much that
-- this would take long is left as it is, with 55000: its days stay there until their retention is over.
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
  -- As above.
  PERFORM brin_desummarize_range(i.indexrelid, 0)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
  WHERE i.indrelid = partition_name::regclass AND a.amname = 'brin';
  RETURN true;
END
$$;
