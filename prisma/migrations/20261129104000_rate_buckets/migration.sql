-- Token buckets of webhooks with a rate limit (docs/adr/0072-ordered-webhooks.md). Each draw updates one row, so
-- pages have space for HOT updates. Not unlogged: after a crash all buckets would be full.

-- CreateTable
CREATE TABLE "rate_buckets" (
    "subscription_id" TEXT NOT NULL,
    "tokens" DOUBLE PRECISION NOT NULL,
    "updated_at" TIMESTAMPTZ(6) NOT NULL,
    "limited_at" TIMESTAMPTZ(6),

    CONSTRAINT "rate_buckets_pkey" PRIMARY KEY ("subscription_id")
) WITH (fillfactor = 50);

-- AddForeignKey
ALTER TABLE "rate_buckets" ADD CONSTRAINT "rate_buckets_subscription_id_fkey"
    FOREIGN KEY ("subscription_id") REFERENCES "subscriptions"("id") ON DELETE CASCADE ON UPDATE CASCADE;
