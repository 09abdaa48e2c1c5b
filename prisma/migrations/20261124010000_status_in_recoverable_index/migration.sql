-- What failed or was cancelled is counted and paged by this index alone: with the account and the status in it, no row has to be
-- looked at. Small, as it was: most deliveries are never in it.

-- DropIndex
-- allows require-concurrent-index-deletion: services stand still for the migrations of this release.
DROP INDEX "deliveries_recoverable_idx";

-- CreateIndex
-- allows require-concurrent-index-creation: services stand still for them, and so may whoever writes deliveries.
CREATE INDEX "deliveries_recoverable_idx" ON "deliveries" ("subscription_id", "day", "created_at", "id", "account_id", "status")
  WHERE "status" IN ('failed', 'cancelled');
