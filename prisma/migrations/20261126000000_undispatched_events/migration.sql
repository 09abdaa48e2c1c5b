-- Undispatched events are rows of an ordinary, logged table: a crash of PostgreSQL leaves it complete. It replaces the unlogged
-- open_events with its checkpoint, and the columns of events by which it was rebuilt. Services stop for the migrations of this release.

-- CreateTable
CREATE TABLE "undispatched_events" (
    "account_id" BIGINT NOT NULL,
    "day" DATE NOT NULL,
    "event_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "undispatched_events_pkey" PRIMARY KEY ("event_id","account_id","day")
);

-- What Prisma's schema cannot say

-- A row lives for milliseconds unless the queue is away. Vacuum removes dead rows before they fill many pages; a plan that was made
-- for an empty table is replaced soon after the table has grown.
ALTER TABLE "undispatched_events" SET (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000);

-- After a crash open_events is empty and open_events_whole has no row. Then every event since the checkpoint is undispatched that
-- has no delivery and is not marked as unmatched. The margin of a day covers a clock that was ahead when the checkpoint was written.
DO $$
BEGIN
  IF EXISTS (SELECT FROM "open_events_whole") THEN
    INSERT INTO "undispatched_events" ("account_id", "day", "event_id", "created_at")
      SELECT "account_id", "day", "event_id", min("created_at") FROM "open_events" GROUP BY "account_id", "day", "event_id";
  ELSE
    INSERT INTO "undispatched_events" ("account_id", "day", "event_id", "created_at")
      SELECT e."account_id", e."day", e."id", e."created_at" FROM "events" e
      WHERE e."unmatched" IS NOT TRUE
        AND (e."unfinished" IS NOT NULL
          OR e."created_at" >= (SELECT least("at", now()) - interval '1 day' FROM "open_events_checkpoint"))
        AND (e."unfinished" = 'paged' OR NOT EXISTS (
          SELECT FROM "deliveries" d
          WHERE d."day" = e."day" AND d."account_id" = e."account_id" AND d."event_id" = e."id"));
  END IF;
END
$$;

-- DropTable
-- allows ban-drop-table: services stand still for this one, and the rows are in undispatched_events.
DROP TABLE "open_events";
-- allows ban-drop-table: services stand still for this one, and nothing reads the table any more.
DROP TABLE "open_events_whole";
-- allows ban-drop-table: services stand still for this one, and nothing reads the table any more.
DROP TABLE "open_events_checkpoint";

-- DropIndex
-- allows require-concurrent-index-deletion: services stand still for this one.
DROP INDEX "events_unfinished_idx";
-- allows require-concurrent-index-deletion: services stand still for this one.
DROP INDEX "events_created_at_idx";

-- AlterTable
-- allows ban-drop-column: services stand still for this one, and nothing else reads these columns.
ALTER TABLE "events" DROP COLUMN "unmatched", DROP COLUMN "unfinished", ADD COLUMN "run_id" BIGINT;

-- What Prisma's schema cannot say

-- Rows of the log have the names of their values from this release on: migrate rewrites existing rows after the migrations, in batches,
-- and then deletes this mark. Services do not start before.
DO $$
BEGIN
  IF EXISTS (SELECT FROM "events") THEN
    COMMENT ON TABLE "events" IS 'rewrite pending';
  END IF;
END
$$;
