-- What became of the deliveries that a recovery put back.

-- AlterTable
ALTER TABLE "deliveries" ADD COLUMN "recovery_id" TEXT;

-- What Prisma's schema cannot say

-- Few deliveries are ever put back by one: the others have no entry.
CREATE INDEX "deliveries_recovery_idx" ON "deliveries" ("recovery_id", "status") WHERE "recovery_id" IS NOT NULL;
