-- What has ended of the times when a webhook failed (docs/contract.md#incidents). What goes on is in the subscription.

-- CreateTable
CREATE TABLE "incidents" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "subscription_id" TEXT NOT NULL,
    "opened_at" TIMESTAMPTZ(6) NOT NULL,
    "closed_at" TIMESTAMPTZ(6) NOT NULL,
    "failures" INTEGER NOT NULL,
    "moved" BOOLEAN NOT NULL DEFAULT false,
    "opened_at_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("opened_at")) STORED,
    "closed_at_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("closed_at")) STORED,

    CONSTRAINT "incidents_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "incidents_account_id_closed_at_idx" ON "incidents"("account_id", "closed_at" DESC);

-- CreateIndex
CREATE INDEX "incidents_subscription_id_closed_at_idx" ON "incidents"("subscription_id", "closed_at" DESC);

-- AddForeignKey
ALTER TABLE "incidents" ADD CONSTRAINT "incidents_subscription_id_fkey"
  FOREIGN KEY ("subscription_id") REFERENCES "subscriptions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What Prisma's schema cannot say

-- An attempt that succeeds ends it, whoever records it; so does another endpoint, which is judged anew. A failure or two are no
-- incident, and an endpoint that fails by fits and starts has one in five minutes, not one a second.
CREATE FUNCTION "note_incident"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_moved boolean := NEW.last_success_at IS NULL OR NEW.last_success_at < OLD.failing_since;
  ended timestamptz := CASE WHEN is_moved THEN now() ELSE NEW.last_success_at END;
BEGIN
  IF OLD.consecutive_failures < 5 AND ended < OLD.failing_since + interval '1 minute' THEN
    RETURN NULL;
  END IF;
  UPDATE "incidents" SET closed_at = ended, moved = is_moved, failures = failures + OLD.consecutive_failures
  WHERE id = (
      SELECT id FROM "incidents" WHERE subscription_id = OLD.id ORDER BY closed_at DESC LIMIT 1)
    AND closed_at > OLD.failing_since - interval '5 minutes';
  IF NOT FOUND THEN
    INSERT INTO "incidents" (account_id, subscription_id, opened_at, closed_at, failures, moved)
    VALUES (OLD.account_id, OLD.id, OLD.failing_since, ended, OLD.consecutive_failures, is_moved);
  END IF;
  RETURN NULL;
END $$;

-- Of any column: a trigger sets this one where the endpoint changes.
CREATE TRIGGER "note_incident" AFTER UPDATE ON "subscriptions" FOR EACH ROW
  WHEN (OLD.failing_since IS NOT NULL AND NEW.failing_since IS DISTINCT FROM OLD.failing_since)
  EXECUTE FUNCTION "note_incident"();
