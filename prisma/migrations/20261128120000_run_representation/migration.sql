-- Times of runs with the fraction of a second that was reported: without it, a client that polls by time misses runs. A wider precision
-- does not rewrite the table. A queued run has neither a start nor an engine. There is no index on `status`: it would end HOT updates.

-- AlterTable
-- allows changing-column-type: a wider precision of a time rewrites no row and scans none.
ALTER TABLE "runs"
    ALTER COLUMN "started_at" SET DATA TYPE TIMESTAMPTZ(6),
    ALTER COLUMN "finished_at" SET DATA TYPE TIMESTAMPTZ(6),
    ALTER COLUMN "errored_at" SET DATA TYPE TIMESTAMPTZ(6),
    ALTER COLUMN "artifacts_ingested_at" SET DATA TYPE TIMESTAMPTZ(6);
ALTER TABLE "runs"
    ALTER COLUMN "started_at" DROP NOT NULL,
    ALTER COLUMN "engine_version" DROP NOT NULL;
ALTER TABLE "runs"
    ADD COLUMN "trigger" JSONB,
    ADD COLUMN "retry_of" BIGINT;
