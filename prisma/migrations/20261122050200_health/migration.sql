-- How each subscription's endpoint does, kept by what the dispatchers write of its attempts anyway; and what the admins of an
-- account are told about it.

-- AlterTable
ALTER TABLE "subscriptions"
  ADD COLUMN "failing_since" TIMESTAMPTZ(6),
  ADD COLUMN "consecutive_failures" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "last_success_at" TIMESTAMPTZ(6),
  ADD COLUMN "failure_told_at" TIMESTAMPTZ(6);

-- CreateTable
CREATE TABLE "notices" (
    "id" BIGSERIAL NOT NULL,
    "kind" TEXT NOT NULL,
    "subscription_id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "moment" TIMESTAMPTZ(6) NOT NULL,
    "failures" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "claimed_until" TIMESTAMPTZ(6),
    "sent_at" TIMESTAMPTZ(6),

    CONSTRAINT "notices_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "notices_subscription_id_idx" ON "notices"("subscription_id");

-- CreateIndex
CREATE INDEX "notices_created_at_idx" ON "notices"("created_at");

-- AddForeignKey
ALTER TABLE "notices" ADD CONSTRAINT "notices_subscription_id_fkey" FOREIGN KEY ("subscription_id") REFERENCES "subscriptions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What Prisma's schema cannot say

ALTER TABLE "subscriptions"
  ADD COLUMN "failing_since_micros" BIGINT GENERATED ALWAYS AS ("epoch_micros"("failing_since")) STORED,
  ADD COLUMN "last_success_at_micros" BIGINT GENERATED ALWAYS AS ("epoch_micros"("last_success_at")) STORED;

ALTER TABLE "notices" ADD CONSTRAINT "notices_kind_check" CHECK ("kind" IN ('failing', 'recovered', 'deactivated'));

CREATE INDEX "notices_unsent_idx" ON "notices" ("id") WHERE "sent_at" IS NULL;

-- Changes when a subscription begins or ceases to fail, and not with each attempt: those updates stay cheap.
CREATE INDEX "subscriptions_failing_idx" ON "subscriptions" ("failing_since") WHERE "failing_since" IS NOT NULL;
CREATE INDEX "subscriptions_failure_told_idx" ON "subscriptions" ("failure_told_at") WHERE "failure_told_at" IS NOT NULL;

-- Another endpoint, or one that its owner has just switched on, is judged anew.
CREATE FUNCTION "subscription_is_brought_back"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."failing_since" := NULL;
  NEW."consecutive_failures" := 0;
  NEW."failure_told_at" := NULL;
  IF NEW."active" THEN
    NEW."deactivate_reason" := NULL;
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER "subscriptions_brought_back" BEFORE UPDATE OF "client_url", "active"
  ON "subscriptions" FOR EACH ROW
  WHEN (NEW."client_url" <> OLD."client_url" OR (NEW."active" AND NOT OLD."active"))
  EXECUTE FUNCTION "subscription_is_brought_back"();
