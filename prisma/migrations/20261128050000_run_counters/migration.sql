-- Run ids are drawn per account: a sequence of all accounts shows each of them how many runs the others have. The first draw of an
-- account exceeds the ids of its stored runs, so the table starts empty. The sequence remains, because the previous release uses it.

-- CreateTable
CREATE TABLE "run_counters" (
    "account_id" BIGINT NOT NULL,
    "last_run_id" BIGINT NOT NULL,

    CONSTRAINT "run_counters_pkey" PRIMARY KEY ("account_id")
);

-- AlterTable
ALTER TABLE "runs" ALTER COLUMN "id" DROP DEFAULT;
