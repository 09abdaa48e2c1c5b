-- Stores until when an endpoint has asked for no requests (Retry-After), for all dispatchers (docs/contract.md#retry-after).

-- AlterTable
ALTER TABLE "subscriptions" ADD COLUMN "blocked_until" TIMESTAMPTZ(6), ADD COLUMN "probe_at" TIMESTAMPTZ(6);

-- What Prisma's schema cannot say

-- The columns of both are those of no other trigger, so that an attempt that changes no block raises no version.
CREATE TRIGGER "subscriptions_blocked_next_version" BEFORE UPDATE OF "blocked_until"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "next_subscription_version"();
CREATE CONSTRAINT TRIGGER "subscriptions_blocked_version" AFTER UPDATE OF "blocked_until"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();

-- Another endpoint, or one that its owner has just activated, has asked for nothing.
CREATE OR REPLACE FUNCTION "subscription_is_brought_back"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."failing_since" := NULL;
  NEW."consecutive_failures" := 0;
  NEW."failure_told_at" := NULL;
  NEW."blocked_until" := NULL;
  IF NEW."active" THEN
    NEW."deactivate_reason" := NULL;
  END IF;
  RETURN NEW;
END
$$;
