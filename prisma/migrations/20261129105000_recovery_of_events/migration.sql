-- Recoveries of events (docs/contract.md#recovery): also of those without a delivery.

-- AlterTable
ALTER TABLE "recoveries"
  ALTER COLUMN "delivery_status" DROP NOT NULL,
  ADD COLUMN "include" TEXT,
  ADD COLUMN "resend_delivered" BOOLEAN NOT NULL DEFAULT false,
  ADD COLUMN "count_limited" BOOLEAN NOT NULL DEFAULT false;

-- CreateIndex
-- allows require-concurrent-index-creation: services are stopped for the migrations of this release.
CREATE INDEX "events_account_id_created_at_idx" ON "events"("account_id", "created_at");

-- Not expressible in Prisma's schema

-- A recovery is of deliveries by their status, or of events.
-- allows constraint-missing-not-valid: the table has one row for each recovery, so the check takes milliseconds.
ALTER TABLE "recoveries"
  ADD CONSTRAINT "recoveries_include_check"
    CHECK (("include" IS NULL) = ("delivery_status" IS NOT NULL)
      AND coalesce("include", 'all') IN ('unsent', 'all')
      AND (NOT "resend_delivered" OR "include" IS NOT DISTINCT FROM 'all'));
