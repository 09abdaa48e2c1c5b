-- Run ids repeat across accounts, so the index that finds the deliveries of a run has the account, too.

-- DropIndex
-- allows require-concurrent-index-deletion: services stand still for the migrations of this release.
DROP INDEX "deliveries_run_id_idx";

-- CreateIndex
-- allows require-concurrent-index-creation: services stand still for them, and with them all writers of deliveries.
CREATE INDEX "deliveries_run_id_account_id_idx" ON "deliveries" ("run_id", "account_id");
