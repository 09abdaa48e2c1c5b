-- Files that job runners upload, and the statuses of models that were read from them. No foreign key to runs: runs stay
-- on the coordinator of a record that is distributed by account.

-- CreateTable
CREATE TABLE "artifacts" (
    "account_id" BIGINT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "path" TEXT NOT NULL,
    "step" INTEGER NOT NULL,
    "object_id" UUID NOT NULL,
    "bytes" INTEGER NOT NULL,
    "sha256" BYTEA NOT NULL,
    "run_created_at" TIMESTAMPTZ(6) NOT NULL,
    "uploaded_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "artifacts_pkey" PRIMARY KEY ("account_id", "run_id", "path", "step")
);

-- CreateTable
CREATE TABLE "artifact_contents" (
    "account_id" BIGINT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "object_id" UUID NOT NULL,
    "part" INTEGER NOT NULL,
    "content" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "artifact_contents_pkey" PRIMARY KEY ("account_id", "run_id", "object_id", "part")
);

-- CreateTable
CREATE TABLE "run_models" (
    "account_id" BIGINT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "step" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "unique_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "execution_time" DOUBLE PRECISION,
    "message" TEXT,
    "thread_id" TEXT,
    "run_created_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "run_models_pkey" PRIMARY KEY ("account_id", "run_id", "step", "position")
);

-- CreateIndex
CREATE INDEX "artifacts_account_id_bytes_idx" ON "artifacts"("account_id", "bytes");

-- CreateIndex
CREATE INDEX "artifacts_run_created_at_idx" ON "artifacts"("run_created_at");

-- CreateIndex
CREATE INDEX "run_models_run_created_at_idx" ON "run_models"("run_created_at");
