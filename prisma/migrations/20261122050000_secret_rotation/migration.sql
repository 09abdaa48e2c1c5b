-- A subscription may have a second secret, which takes the place of the first at a moment that is told beforehand.

-- AlterTable
ALTER TABLE "subscriptions"
  ADD COLUMN "next_hmac_secret_ciphertext" TEXT,
  ADD COLUMN "rotation_started_at" TIMESTAMPTZ(6),
  ADD COLUMN "rotation_ends_at" TIMESTAMPTZ(6),
  ADD COLUMN "secret_generation" INTEGER NOT NULL DEFAULT 1;

-- What Prisma's schema cannot say

ALTER TABLE "subscriptions"
  ADD COLUMN "rotation_started_at_micros" BIGINT GENERATED ALWAYS AS ("epoch_micros"("rotation_started_at")) STORED,
  ADD COLUMN "rotation_ends_at_micros" BIGINT GENERATED ALWAYS AS ("epoch_micros"("rotation_ends_at")) STORED,
  ADD CONSTRAINT "subscriptions_rotation_check"
    CHECK (num_nonnulls("next_hmac_secret_ciphertext", "rotation_started_at", "rotation_ends_at") IN (0, 3));

-- From the commit on, no dispatcher signs with what it remembered. Beside the trigger of the columns that users change.
CREATE CONSTRAINT TRIGGER "subscriptions_rotation_version" AFTER UPDATE OF "next_hmac_secret_ciphertext", "rotation_ends_at"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();

-- What has ended, and waits for its old secret to be erased.
CREATE INDEX "subscriptions_rotation_idx" ON "subscriptions" ("rotation_ends_at") WHERE "rotation_ends_at" IS NOT NULL;

-- Beside the index of the secrets in use: the keys of those that follow them.
CREATE INDEX "subscriptions_next_key_name_idx" ON "subscriptions" (split_part("next_hmac_secret_ciphertext", '.', 1))
  WHERE "active" AND "deleted_at" IS NULL AND "next_hmac_secret_ciphertext" IS NOT NULL;
