-- Why the latest attempt failed, beside its status: 502 and 504 are the endpoint's own answers as well as what is recorded
-- when none came (docs/contract.md#attempts). Null where it succeeded, and of attempts before this migration.

-- AlterTable
ALTER TABLE "deliveries" ADD COLUMN "error_code" TEXT;

-- AlterTable
ALTER TABLE "subscriptions" ADD COLUMN "error_code" TEXT;
