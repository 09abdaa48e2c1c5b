-- Lets a dispatcher keep subscriptions in memory and ask, with each fan-out, whether they still are as it knows them.

-- AlterTable
ALTER TABLE "subscriptions" ADD COLUMN "version" INTEGER NOT NULL DEFAULT 1;

-- What Prisma's schema cannot say

-- Whoever changes what a delivery depends on, and however, changes the version too. Not what the dispatchers write
-- themselves after attempts: a trigger of columns does not run for an update of others.
CREATE FUNCTION "next_subscription_version"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."version" := OLD."version" + 1;
  RETURN NEW;
END
$$;

CREATE TRIGGER "subscriptions_version" BEFORE UPDATE OF
    "account_id", "name", "event_types", "job_ids", "client_url", "active", "hmac_secret_ciphertext", "deleted_at", "version"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "next_subscription_version"();
