-- Positions of events in the feed of their account (docs/adr/0070-feed.md). Events that are on record before this migration have
-- none, and are not in the feed.

-- Two statements: a column that is added with its default would rewrite the log.
-- AlterTable
ALTER TABLE "events" ADD COLUMN "position" BIGINT;
ALTER TABLE "events" ALTER COLUMN "position" SET DEFAULT (pg_current_xact_id()::text)::bigint;

-- Prisma's schema has no partial indexes. This one has no rows yet.
-- allows require-concurrent-index-creation: the upgrade to this release crosses the baseline, so nothing writes meanwhile, and PostgreSQL builds no index of a partitioned table so.
CREATE INDEX "events_feed_idx" ON "events" ("account_id", "position") WHERE "position" IS NOT NULL;

-- CreateTable
CREATE TABLE "feed_generations" (
    "number" INTEGER NOT NULL,
    "id" TEXT NOT NULL,
    "system_identifier" TEXT NOT NULL,
    "timeline" TEXT NOT NULL,
    "position_offset" BIGINT NOT NULL,
    "first_position" BIGINT NOT NULL,
    "marked_position" BIGINT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "feed_generations_pkey" PRIMARY KEY ("number")
);

-- Not expressible in Prisma's schema

-- The server's history of transactions: it changes when a backup is restored or a standby is promoted.
CREATE FUNCTION "server_history"(OUT "system_identifier" text, OUT "timeline" text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT s.system_identifier::text, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) FROM pg_control_system() s
$$;

-- Begins a generation of positions if the server's history is not that of the latest one. Positions continue above those on
-- record: on a new server, whose transaction ids begin at a low number, the default of the column adds an offset, which only the owner can
-- change. Returns whether a generation began.
CREATE FUNCTION "renew_feed_generation"() RETURNS boolean
LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
DECLARE
  latest feed_generations%ROWTYPE;
  current_history record;
  horizon bigint := (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint;
  next_offset bigint;
  highest bigint := 0;
  account bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('runhook.renew_feed_generation'), 0);
  SELECT * INTO latest FROM feed_generations ORDER BY number DESC LIMIT 1;
  SELECT * INTO current_history FROM server_history();
  IF latest.system_identifier = current_history.system_identifier AND latest.timeline = current_history.timeline THEN
    RETURN false;
  END IF;
  next_offset := coalesce(latest.position_offset, 0);
  IF latest.system_identifier <> current_history.system_identifier THEN
    -- By account, because that is the index, and a distributed log allows no other way.
    FOR account IN SELECT id FROM accounts LOOP
      highest := greatest(highest, (SELECT max(e.position) FROM events e WHERE e.account_id = account));
    END LOOP;
    next_offset := greatest(next_offset, 1 - horizon + highest);
    EXECUTE format(
      'ALTER TABLE events ALTER COLUMN position SET DEFAULT (pg_current_xact_id()::text)::bigint + %s', next_offset);
  END IF;
  INSERT INTO feed_generations (
    number, id, system_identifier, timeline, position_offset, first_position, marked_position)
  SELECT coalesce(latest.number, 0) + 1, replace(gen_random_uuid()::text, '-', ''), current_history.system_identifier,
    current_history.timeline, next_offset, marked, marked
  FROM (SELECT coalesce(latest.marked_position, horizon) AS marked) AS m;
  RETURN true;
END
$$;

SELECT "renew_feed_generation"();
