-- Triggered runs for runners to claim. A row is deleted a day after its run has ended; until then it tells the runner that
-- finished the run from one that had lost its lease. No foreign key to runs, as in the other tables of a run.

-- CreateTable
CREATE TABLE "run_requests" (
    "account_id" BIGINT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "job_id" BIGINT NOT NULL,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "lease_token_hash" BYTEA,
    "lease_expires_at" TIMESTAMPTZ(6),
    "runner" TEXT,
    "enqueued_at" TIMESTAMPTZ(6),
    "ended_at" TIMESTAMPTZ(6),
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "run_requests_pkey" PRIMARY KEY ("account_id","run_id")
);

-- Prisma's schema has no partial indexes. The first one is small: runs that have ended leave it.
CREATE INDEX "run_requests_open_idx" ON "run_requests" ("account_id", "created_at", "run_id") WHERE "ended_at" IS NULL;
CREATE INDEX "run_requests_ended_idx" ON "run_requests" ("ended_at") WHERE "ended_at" IS NOT NULL;

-- Rows that are there meet the former, narrower constraint.
ALTER TABLE "runs" DROP CONSTRAINT "runs_status_check";
ALTER TABLE "runs" ADD CONSTRAINT "runs_status_check" CHECK ("status" IN ('Queued', 'Starting', 'Running', 'Success', 'Errored', 'Canceled')) NOT VALID;
