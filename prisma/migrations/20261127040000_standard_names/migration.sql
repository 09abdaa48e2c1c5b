-- Columns, tables and functions get the names that the code and the API use. Services stop for this migration: earlier builds use the
-- old names. Indexes of existing partitions keep their names; they are deleted with their day.

-- AlterTable
ALTER TABLE "idempotency_keys" RENAME COLUMN "answer_ciphertext" TO "response_ciphertext";
ALTER TABLE "subscriptions" RENAME COLUMN "failure_told_at" TO "failure_notified_at";
ALTER TABLE "notices" RENAME COLUMN "moment" TO "occurred_at";
ALTER TABLE "incidents" RENAME COLUMN "moved" TO "endpoint_changed";
ALTER TABLE "deliveries" RENAME COLUMN "parked_at" TO "deferred_at";

ALTER TABLE "reconciler_places" RENAME TO "reconciler_cursors";
ALTER TABLE "reconciler_cursors" RENAME COLUMN "half" TO "source";
ALTER TABLE "reconciler_cursors" RENAME COLUMN "after_moment" TO "after_timestamp";
ALTER TABLE "reconciler_cursors" RENAME CONSTRAINT "reconciler_places_pkey" TO "reconciler_cursors_pkey";

ALTER TABLE "remembered_version" RENAME TO "cache_version";
ALTER TABLE "cache_version" RENAME CONSTRAINT "remembered_version_pkey" TO "cache_version_pkey";

-- Not expressible in Prisma's schema

ALTER TABLE "reconciler_cursors" RENAME CONSTRAINT "reconciler_places_half_check" TO "reconciler_cursors_source_check";
ALTER TABLE "cache_version" RENAME CONSTRAINT "remembered_version_single" TO "cache_version_single";

ALTER INDEX "subscriptions_failure_told_idx" RENAME TO "subscriptions_failure_notified_idx";
ALTER INDEX "deliveries_parked_idx" RENAME TO "deliveries_deferred_idx";
ALTER INDEX "deliveries_parked_account_idx" RENAME TO "deliveries_deferred_account_idx";

-- Both find the lanes or accounts with deferred deliveries by the index, one after another, however many deliveries each has. A
-- recursive statement would do the same, but not where the log is distributed: there each step must be a separate statement.

DROP FUNCTION "lanes_with_parked"(text, integer);
CREATE FUNCTION "lanes_with_deferred"("after" text, "count_max" integer) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
  FOR step IN 1..count_max LOOP
    SELECT d."subscription_id" INTO after FROM "deliveries" d
    WHERE d."deferred_at" IS NOT NULL AND d."subscription_id" > after
    ORDER BY d."subscription_id" LIMIT 1;
    EXIT WHEN NOT FOUND;
    RETURN NEXT after;
  END LOOP;
END
$$;

DROP FUNCTION "accounts_with_parked"(bigint, integer);
CREATE FUNCTION "accounts_with_deferred"("after" bigint, "count_max" integer) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
BEGIN
  FOR step IN 1..count_max LOOP
    SELECT d."account_id" INTO after FROM "deliveries" d
    WHERE d."deferred_at" IS NOT NULL AND d."account_id" > after
    ORDER BY d."account_id" LIMIT 1;
    EXIT WHEN NOT FOUND;
    RETURN NEXT after;
  END LOOP;
END
$$;

-- Resets the health of a subscription whose endpoint was changed or that was activated.
ALTER FUNCTION "subscription_is_brought_back"() RENAME TO "reset_subscription_health";
ALTER TRIGGER "subscriptions_brought_back" ON "subscriptions" RENAME TO "subscriptions_reset_health";
CREATE OR REPLACE FUNCTION "reset_subscription_health"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."failing_since" := NULL;
  NEW."consecutive_failures" := 0;
  NEW."failure_notified_at" := NULL;
  IF NEW."blocked_until" > now() THEN
    NEW."blocked_until" := now();
  END IF;
  IF NEW."active" THEN
    NEW."deactivate_reason" := NULL;
  END IF;
  RETURN NEW;
END
$$;

-- Writes the incident of a subscription whose failures have ended. Failures that begin within five minutes belong to the incident
-- before them.
ALTER FUNCTION "note_incident"() RENAME TO "record_incident";
ALTER TRIGGER "note_incident" ON "subscriptions" RENAME TO "subscriptions_incident";
CREATE OR REPLACE FUNCTION "record_incident"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  is_changed boolean := NEW.last_success_at IS NULL OR NEW.last_success_at < OLD.failing_since;
  ended timestamptz := CASE WHEN is_changed THEN now() ELSE NEW.last_success_at END;
BEGIN
  IF OLD.consecutive_failures < 5 AND ended < OLD.failing_since + interval '1 minute' THEN
    RETURN NULL;
  END IF;
  UPDATE "incidents" SET closed_at = ended, endpoint_changed = is_changed, failures = failures + OLD.consecutive_failures
  WHERE id = (
      SELECT id FROM "incidents" WHERE subscription_id = OLD.id ORDER BY closed_at DESC LIMIT 1)
    AND closed_at > OLD.failing_since - interval '5 minutes';
  IF NOT FOUND THEN
    INSERT INTO "incidents" (account_id, subscription_id, opened_at, closed_at, failures, endpoint_changed)
    VALUES (OLD.account_id, OLD.id, OLD.failing_since, ended, OLD.consecutive_failures, is_changed);
  END IF;
  RETURN NULL;
END
$$;

-- Advances the version of the cached data once per transaction, so that a transaction does not read one dead version of the row for
-- each row that it has changed.
ALTER FUNCTION "what_is_remembered_changed"() RENAME TO "advance_cache_version";
CREATE OR REPLACE FUNCTION "advance_cache_version"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "cache_version" SET "version" = "next_version"("version") WHERE "xmin" <> pg_current_xact_id()::xid;
  RETURN NULL;
END
$$;
ALTER TRIGGER "accounts_remembered" ON "accounts" RENAME TO "accounts_cache_version";
ALTER TRIGGER "users_remembered" ON "users" RENAME TO "users_cache_version";
ALTER TRIGGER "memberships_remembered" ON "memberships" RENAME TO "memberships_cache_version";
ALTER TRIGGER "service_tokens_remembered" ON "service_tokens" RENAME TO "service_tokens_cache_version";
ALTER TRIGGER "projects_remembered" ON "projects" RENAME TO "projects_cache_version";
ALTER TRIGGER "environments_remembered" ON "environments" RENAME TO "environments_cache_version";
ALTER TRIGGER "jobs_remembered" ON "jobs" RENAME TO "jobs_cache_version";
