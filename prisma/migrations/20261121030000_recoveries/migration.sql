-- Recoveries: the failed or cancelled deliveries of a window, put back a page at a time.

-- CreateTable
CREATE TABLE "recoveries" (
    "id" TEXT NOT NULL,
    "subscription_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "reason" TEXT,
    "since" TIMESTAMPTZ(6) NOT NULL,
    "until" TIMESTAMPTZ(6) NOT NULL,
    "delivery_status" TEXT NOT NULL,
    "total_count" INTEGER NOT NULL,
    "recovered_count" INTEGER NOT NULL DEFAULT 0,
    "after_day" DATE,
    "after_created_at" TIMESTAMPTZ(6),
    "after_id" TEXT,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "completed_at" TIMESTAMPTZ(6),

    CONSTRAINT "recoveries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "recoveries_subscription_id_idx" ON "recoveries"("subscription_id");

-- AddForeignKey
ALTER TABLE "recoveries" ADD CONSTRAINT "recoveries_subscription_id_fkey" FOREIGN KEY ("subscription_id") REFERENCES "subscriptions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What Prisma's schema cannot say

ALTER TABLE "recoveries"
  ADD CONSTRAINT "recoveries_status_check" CHECK ("status" IN ('running', 'done', 'cancelled')),
  ADD CONSTRAINT "recoveries_delivery_status_check" CHECK ("delivery_status" IN ('failed', 'cancelled'));

-- One at a time for each subscription; also how the dispatcher finds what is running.
CREATE UNIQUE INDEX "recoveries_running_idx" ON "recoveries" ("subscription_id") WHERE "status" = 'running';

-- What a recovery counts and pages through. Small: most deliveries are never in it.
CREATE INDEX "deliveries_recoverable_idx" ON "deliveries" ("subscription_id", "day", "created_at", "id")
  WHERE "status" IN ('failed', 'cancelled');
