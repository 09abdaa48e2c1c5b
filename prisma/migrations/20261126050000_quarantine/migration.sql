-- Items that a store rejects for their data are set aside here with the reason, so that no other item waits for them. The
-- reconciler skips them until an operator releases them. Deleted with the retention of the log.

-- CreateTable
CREATE TABLE "quarantined_items" (
    "account_id" BIGINT NOT NULL,
    "kind" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "message" BYTEA,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "quarantined_items_pkey" PRIMARY KEY ("account_id", "kind", "key")
);

-- CreateIndex
CREATE INDEX "quarantined_items_created_at_idx" ON "quarantined_items"("created_at");

-- What Prisma's schema cannot say

ALTER TABLE "quarantined_items" ADD CONSTRAINT "quarantined_items_kind_check" CHECK ("kind" IN ('event', 'delivery', 'lane', 'recovery', 'status', 'notice'));
