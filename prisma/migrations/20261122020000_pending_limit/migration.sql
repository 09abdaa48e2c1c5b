-- Bounds how many deliveries of an account wait: while they are too many, the lanes that hold more than their share are
-- full, and take no more (docs/architecture.md#lanes).

-- AlterTable
ALTER TABLE "subscriptions" ADD COLUMN "lane_full_since" TIMESTAMPTZ(6);

-- What Prisma's schema cannot say

-- How many of each lane of an account are parked. What is attempted at once, as nearly all is, never enters it.
CREATE INDEX "deliveries_parked_account_idx" ON "deliveries" ("account_id", "subscription_id") WHERE "parked_at" IS NOT NULL;

-- Accounts with lanes that are full, when nothing of them is parked any more too.
CREATE INDEX "subscriptions_lane_full_idx" ON "subscriptions" ("account_id") WHERE "lane_full_since" IS NOT NULL;

-- From the commit on, no dispatcher fans out with what it remembered. Beside the trigger of the columns that users change.
CREATE CONSTRAINT TRIGGER "subscriptions_lane_full_version" AFTER UPDATE OF "lane_full_since"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();
