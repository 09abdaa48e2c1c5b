-- No version is used twice, also where an asynchronous replica without the last changes was promoted: a change after these had the
-- number of a lost one, so a process that had cached the lost state used it as current (docs/adr/0024-subscription-cache.md).

-- AlterTable
-- allows changing-column-type: services stop for 0.2.0, and the table has one row for each webhook, 1,000 per account by default.
ALTER TABLE "subscriptions" ALTER COLUMN "version" SET DATA TYPE BIGINT;

-- What Prisma's schema cannot say

-- Returns the version after the previous one, which is null for a new row: microseconds since the epoch.
CREATE FUNCTION "next_version"("previous" BIGINT) RETURNS BIGINT
LANGUAGE sql
RETURN GREATEST("previous" + 1, "epoch_micros"(clock_timestamp()));

CREATE OR REPLACE FUNCTION "next_account_version"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."version" := "next_version"(OLD."version");
  RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION "next_subscription_version"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."version" := "next_version"(OLD."version");
  RETURN NEW;
END
$$;

-- Once for each transaction, so that it does not read as many dead versions of the row as it has changed rows.
CREATE OR REPLACE FUNCTION "what_is_remembered_changed"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "remembered_version" SET "version" = "next_version"("version") WHERE "xmin" <> pg_current_xact_id()::xid;
  RETURN NULL;
END
$$;

-- The id of a lost row may be used again: its sequence is that of the replica.
CREATE TRIGGER "accounts_first_version" BEFORE INSERT
  ON "accounts" FOR EACH ROW EXECUTE FUNCTION "next_account_version"();
CREATE TRIGGER "subscriptions_first_version" BEFORE INSERT
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "next_subscription_version"();
