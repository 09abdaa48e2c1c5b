-- Order of the deliveries of a run for an ordered webhook (docs/adr/0072-ordered-webhooks.md). While a delivery waits for an earlier
-- one of its run, deferred_at is 'infinity': it counts for the pending limit, is no expired one, and its lane passes over it.

-- AlterTable
ALTER TABLE "deliveries" ADD COLUMN "waits_for_event_id" TEXT, ADD COLUMN "waits_for_event_type" TEXT, ADD COLUMN "out_of_order" BOOLEAN;

-- Not expressible in Prisma's schema

-- Deliveries that a lane takes next, without the deliveries that wait for others: thousands of them may be older. With the account, it is never
-- larger than the index of all deliveries of a subscription, nor less selective, which PostgreSQL would prefer otherwise.
-- allows require-concurrent-index-deletion: the upgrade to this release crosses the baseline, so nothing writes meanwhile.
DROP INDEX "deliveries_lane_idx";
-- allows require-concurrent-index-creation: the upgrade to this release crosses the baseline, so nothing writes meanwhile.
CREATE INDEX "deliveries_lane_idx" ON "deliveries" ("subscription_id", "day", "created_at", "id", "account_id")
  WHERE "deferred_at" < 'infinity';

-- Deliveries that were deferred for too long; and of the deliveries that wait, those of a run, without an index more for each plan to open.
-- allows require-concurrent-index-deletion: the upgrade to this release crosses the baseline, so nothing writes meanwhile.
DROP INDEX "deliveries_deferred_idx";
-- allows require-concurrent-index-creation: the upgrade to this release crosses the baseline, so nothing writes meanwhile.
CREATE INDEX "deliveries_deferred_idx" ON "deliveries" ("deferred_at", "subscription_id", "run_id") WHERE "deferred_at" IS NOT NULL;

CREATE OR REPLACE FUNCTION "lanes_with_deferred"("after" text, "count_max" integer) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
  FOR step IN 1..count_max LOOP
    SELECT d."subscription_id" INTO after FROM "deliveries" d
    WHERE d."deferred_at" < 'infinity' AND d."subscription_id" > after
    ORDER BY d."subscription_id" LIMIT 1;
    EXIT WHEN NOT FOUND;
    RETURN NEXT after;
  END LOOP;
END
$$;
