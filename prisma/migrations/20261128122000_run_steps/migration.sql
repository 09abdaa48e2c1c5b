-- Steps of a run with their logs (docs/contract.md#run-steps), stored as long as the run. No foreign key: on Citus this table may be
-- distributed, and `runs` may not.

-- CreateTable
CREATE TABLE "run_steps" (
    "account_id" BIGINT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "index" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(6),
    "finished_at" TIMESTAMPTZ(6),
    "logs" BYTEA,
    "debug_logs" BYTEA,
    "logs_bytes" INTEGER NOT NULL,
    "debug_logs_bytes" INTEGER NOT NULL,
    "stored_bytes" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL,
    "updated_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "run_steps_pkey" PRIMARY KEY ("account_id","run_id","index")
);

-- CreateTable
CREATE TABLE "run_steps_usage" (
    "account_id" BIGINT NOT NULL,
    "bytes" BIGINT NOT NULL,

    CONSTRAINT "run_steps_usage_pkey" PRIMARY KEY ("account_id")
);

-- Not expressible in Prisma's schema

-- The texts are compressed already.
ALTER TABLE "run_steps"
  ALTER COLUMN "logs" SET STORAGE EXTERNAL,
  ALTER COLUMN "debug_logs" SET STORAGE EXTERNAL;
