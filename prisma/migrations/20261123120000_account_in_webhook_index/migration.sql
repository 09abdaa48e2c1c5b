-- Pages and counts are read from the index of a webhook alone. They name the account, so that a log that is spread by account is
-- asked in one place only: the index has it, or each row would have to be looked at.

-- DropIndex
-- allows require-concurrent-index-deletion: services stand still for the migrations of this release.
DROP INDEX "deliveries_subscription_id_day_created_at_id_idx";

-- CreateIndex
-- allows require-concurrent-index-creation: services stand still for them, and so may whoever writes deliveries.
CREATE INDEX "deliveries_subscription_id_day_created_at_id_account_id_idx"
  ON "deliveries" ("subscription_id", "day", "created_at", "id", "account_id");
