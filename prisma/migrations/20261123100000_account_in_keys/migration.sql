-- Every key of the log holds the account, so that the log can be spread over servers by it, and an event's id is its account's
-- own (docs/adr/0047-account-in-keys.md). Services stop for it, as for those before it that 0.1.0 cannot work beside.

-- AlterTable
-- allows adding-not-nullable-field, adding-serial-primary-key-field, constraint-missing-not-valid: it holds few rows, or none.
ALTER TABLE "open_events" ADD COLUMN "account_id" BIGINT;
UPDATE "open_events" o SET "account_id" = e."account_id" FROM "events" e WHERE e."day" = o."day" AND e."id" = o."event_id";
DELETE FROM "open_events" WHERE "account_id" IS NULL;
ALTER TABLE "open_events" ALTER COLUMN "account_id" SET NOT NULL;
ALTER TABLE "open_events" DROP CONSTRAINT "open_events_pkey";
ALTER TABLE "open_events" ADD CONSTRAINT "open_events_pkey" PRIMARY KEY ("day", "event_id", "account_id");

-- AlterTable
-- allows adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "events" DROP CONSTRAINT "events_pkey";
ALTER TABLE "events" ADD CONSTRAINT "events_pkey" PRIMARY KEY ("day", "id", "account_id");

-- AlterTable
-- allows adding-not-nullable-field, adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "attempts" DROP CONSTRAINT "attempts_pkey";
ALTER TABLE "attempts" ADD COLUMN "account_id" BIGINT;
UPDATE "attempts" a SET "account_id" = d."account_id" FROM "deliveries" d WHERE d."day" = a."day" AND d."id" = a."delivery_id";
DELETE FROM "attempts" WHERE "account_id" IS NULL;
ALTER TABLE "attempts" ALTER COLUMN "account_id" SET NOT NULL;
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_pkey" PRIMARY KEY ("day", "delivery_id", "number", "account_id");

-- AlterTable
-- allows adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "deliveries" DROP CONSTRAINT "deliveries_pkey";
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_pkey" PRIMARY KEY ("day", "id", "account_id");

-- What Prisma's schema cannot say

-- New columns of a view come last.
CREATE OR REPLACE VIEW "logged_attempts" AS
  SELECT "day", "delivery_id", "number", "trigger", "started_at", "duration_ms", "http_status_code", "error_code",
         "error_message", "request_headers", "response_headers", "response_body", "response_truncated",
         "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms", "account_id"
  FROM "attempts"
  UNION ALL
  SELECT "day", "id", 1, 'automatic', "started_at", "duration_ms", "http_status_code", NULL,
         NULL, "request_headers", "response_headers", "response_body", coalesce("response_truncated", false),
         "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms", "account_id"
  FROM "deliveries" WHERE "started_at" IS NOT NULL;
