-- Lets a dispatcher ask whether an account's subscriptions still are as it knows them by looking at one row, however
-- many there are and were.

-- AlterTable
ALTER TABLE "accounts" ADD COLUMN "version" BIGINT NOT NULL DEFAULT 1;

-- What Prisma's schema cannot say

DROP TRIGGER "subscriptions_version" ON "subscriptions";
DROP FUNCTION "next_subscription_version"();
ALTER TABLE "subscriptions" DROP COLUMN "version";

CREATE FUNCTION "next_account_version"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."version" := OLD."version" + 1;
  RETURN NEW;
END
$$;

CREATE TRIGGER "accounts_version" BEFORE UPDATE OF "plan", "deployment", "version"
  ON "accounts" FOR EACH ROW EXECUTE FUNCTION "next_account_version"();

-- Once for a transaction, whatever it changes: it must not walk along as many versions of the row as it made.
CREATE FUNCTION "subscriptions_are_changed"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "accounts" SET "version" = "version"
  WHERE "id" IN (OLD."account_id", NEW."account_id") AND "xmin" <> pg_current_xact_id()::xid;
  RETURN NULL;
END
$$;

-- Whoever changes what a delivery depends on, and however, changes the account's version too. Not what the dispatchers
-- write themselves after attempts: a trigger of columns does not run for an update of others. At the commit, so that
-- the account is what every transaction locks last, and no two of them wait for each other in a circle.
CREATE CONSTRAINT TRIGGER "subscriptions_version" AFTER INSERT OR DELETE OR UPDATE OF
    "account_id", "name", "event_types", "job_ids", "client_url", "active", "hmac_secret_ciphertext", "deleted_at"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();
