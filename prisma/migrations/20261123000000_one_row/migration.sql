-- An event whose deliveries succeed at once is written once: no mark that rewrites it, no second version of a delivery,
-- no row of an attempt (docs/adr/0043-attempted-then-committed.md).

-- AlterTable
ALTER TABLE "deliveries"
  ADD COLUMN "started_at" TIMESTAMPTZ(6),
  ADD COLUMN "request_headers" JSON,
  ADD COLUMN "response_headers" JSON,
  ADD COLUMN "response_body" TEXT,
  ADD COLUMN "response_truncated" BOOLEAN,
  ADD COLUMN "dns_ms" INTEGER,
  ADD COLUMN "connect_ms" INTEGER,
  ADD COLUMN "tls_ms" INTEGER,
  ADD COLUMN "first_byte_ms" INTEGER,
  ADD COLUMN "total_ms" INTEGER;

-- CreateTable
CREATE TABLE "open_events" (
    "day" DATE NOT NULL,
    "event_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "open_events_pkey" PRIMARY KEY ("day","event_id")
);

-- What Prisma's schema cannot say

INSERT INTO "open_events" ("day", "event_id", "created_at")
  SELECT "day", "id", "created_at" FROM "events" WHERE "fanned_out_at" IS NULL;

DROP INDEX "events_not_fanned_out_idx";
ALTER TABLE "events" DROP COLUMN "fanned_out_at";

-- A row lives for milliseconds, unless the queue is away: what is dead is to be gone before it is many pages.
ALTER TABLE "open_events" SET (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);

-- Every attempt, wherever it is kept: the only one of a delivery that succeeded at once is in the delivery's own row.
CREATE VIEW "logged_attempts" AS
  SELECT "day", "delivery_id", "number", "trigger", "started_at", "duration_ms", "http_status_code", "error_code",
         "error_message", "request_headers", "response_headers", "response_body", "response_truncated",
         "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms"
  FROM "attempts"
  UNION ALL
  SELECT "day", "id", 1, 'automatic', "started_at", "duration_ms", "http_status_code", NULL,
         NULL, "request_headers", "response_headers", "response_body", coalesce("response_truncated", false),
         "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms"
  FROM "deliveries" WHERE "started_at" IS NOT NULL;
