-- Lets a dispatcher load only those subscriptions of an account that have changed since it cached them.

-- AlterTable
ALTER TABLE "subscriptions" ADD COLUMN "version" INTEGER NOT NULL DEFAULT 1;

-- What Prisma's schema cannot say

CREATE FUNCTION "next_subscription_version"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."version" := OLD."version" + 1;
  RETURN NEW;
END
$$;

-- The columns of all triggers that raise the version of the account: a subscription whose version is unchanged must be unchanged in
-- all that a dispatcher caches. A test compares the two lists.
CREATE TRIGGER "subscriptions_next_version" BEFORE UPDATE OF
    "account_id", "name", "event_types", "job_ids", "client_url", "active", "hmac_secret_ciphertext", "deleted_at",
    "lane_full_since", "next_hmac_secret_ciphertext", "rotation_ends_at", "signature_header", "headers_ciphertext"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "next_subscription_version"();
