-- Formats of requests (docs/contract.md#formats). Null: the payload of the contract.

-- AlterTable
ALTER TABLE "attempts" ADD COLUMN "format" TEXT;

-- AlterTable
ALTER TABLE "deliveries" ADD COLUMN "format" TEXT;

-- The last event of each state of a job that was sent to a target which tracks jobs. Written after a delivered attempt of
-- such a format.
-- CreateTable
CREATE TABLE "job_alerts" (
    "subscription_id" TEXT NOT NULL,
    "job_id" BIGINT NOT NULL,
    "target" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "event_id" TEXT NOT NULL,
    "run_ended_at" TIMESTAMPTZ(6) NOT NULL,
    "updated_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "job_alerts_pkey" PRIMARY KEY ("subscription_id","job_id","target","state")
);

-- Not expressible in Prisma's schema

CREATE OR REPLACE VIEW "logged_attempts" AS
  SELECT "day", "delivery_id", "number", "trigger", "started_at", "duration_ms", "http_status_code", "error_code",
         "error_message", "request_headers", "response_headers", "response_body", "response_truncated",
         "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms", "account_id", "format"
  FROM "attempts"
  UNION ALL
  SELECT "day", "id", 1, 'automatic', "started_at", "duration_ms", "http_status_code", NULL,
         NULL, "request_headers", "response_headers", "response_body", coalesce("response_truncated", false),
         "dns_ms", "connect_ms", "tls_ms", "first_byte_ms", "total_ms", "account_id", "format"
  FROM "deliveries" WHERE "started_at" IS NOT NULL;
