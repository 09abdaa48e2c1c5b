-- A delivery may carry its signature in another header, and headers of the subscriber's own.

-- AlterTable
ALTER TABLE "subscriptions"
  ADD COLUMN "signature_header" TEXT,
  ADD COLUMN "header_names" TEXT[] DEFAULT ARRAY[]::TEXT[],
  ADD COLUMN "headers_ciphertext" TEXT;

-- What Prisma's schema cannot say

ALTER TABLE "subscriptions" ADD CONSTRAINT "subscriptions_headers_check"
  CHECK (("headers_ciphertext" IS NULL) = (cardinality("header_names") = 0));

-- Beside the trigger of the columns that users change.
CREATE CONSTRAINT TRIGGER "subscriptions_headers_version" AFTER UPDATE OF "signature_header", "headers_ciphertext"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();

-- Beside the index of the secrets in use: the keys of the headers.
CREATE INDEX "subscriptions_headers_key_name_idx" ON "subscriptions" (split_part("headers_ciphertext", '.', 1))
  WHERE "active" AND "deleted_at" IS NULL AND "headers_ciphertext" IS NOT NULL;
