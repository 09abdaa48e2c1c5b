-- Finds what retention lets go: runs by their age, in an index of a few pages, and subscriptions that were deleted.

-- CreateIndex
CREATE INDEX "runs_created_at_idx" ON "runs" USING BRIN ("created_at");

-- What Prisma's schema cannot say

CREATE INDEX "subscriptions_deleted_at_idx" ON "subscriptions" ("deleted_at") WHERE "deleted_at" IS NOT NULL;
