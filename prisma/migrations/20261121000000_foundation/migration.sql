-- The foundation: identity, jobs and runs, subscriptions, and the partitioned log of events, deliveries and attempts.

-- CreateTable
CREATE TABLE "accounts" (
    "id" BIGSERIAL NOT NULL,
    "identifier" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "plan" TEXT NOT NULL,
    "deployment" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "accounts_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "users" (
    "id" BIGSERIAL NOT NULL,
    "email" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "password_hash" TEXT,
    "api_key_hash" BYTEA NOT NULL,
    "api_key_ciphertext" TEXT NOT NULL,
    "api_key_created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "memberships" (
    "account_id" BIGINT NOT NULL,
    "user_id" BIGINT NOT NULL,
    "license" TEXT NOT NULL,
    "permission_sets" TEXT[],

    CONSTRAINT "memberships_pkey" PRIMARY KEY ("account_id","user_id")
);

-- CreateTable
CREATE TABLE "service_tokens" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "token_hash" BYTEA NOT NULL,
    "permission_sets" TEXT[],
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(6),
    "revoked_at" TIMESTAMPTZ(6),

    CONSTRAINT "service_tokens_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "projects" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,

    CONSTRAINT "projects_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "environments" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,

    CONSTRAINT "environments_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "jobs" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "project_id" BIGINT NOT NULL,
    "environment_id" BIGINT NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "jobs_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "runs" (
    "account_id" BIGINT NOT NULL,
    "id" BIGSERIAL NOT NULL,
    "job_id" BIGINT NOT NULL,
    "job_name" TEXT NOT NULL,
    "project_id" BIGINT NOT NULL,
    "project_name" TEXT NOT NULL,
    "environment_id" BIGINT NOT NULL,
    "environment_name" TEXT NOT NULL,
    "engine_version" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "status_message" TEXT,
    "reason" TEXT,
    "started_at" TIMESTAMPTZ(0) NOT NULL,
    "finished_at" TIMESTAMPTZ(0),
    "errored_at" TIMESTAMPTZ(0),
    "artifacts_ingested_at" TIMESTAMPTZ(0),
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "runs_pkey" PRIMARY KEY ("account_id","id")
);

-- CreateTable
CREATE TABLE "subscriptions" (
    "id" TEXT NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "event_types" TEXT[],
    "job_ids" BIGINT[],
    "client_url" TEXT NOT NULL,
    "active" BOOLEAN NOT NULL,
    "hmac_secret_ciphertext" TEXT NOT NULL,
    "http_status_code" INTEGER NOT NULL DEFAULT 0,
    "dispatched_at" TIMESTAMPTZ(6),
    "deactivate_reason" TEXT,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(6),

    CONSTRAINT "subscriptions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "events" (
    "day" DATE NOT NULL,
    "id" TEXT NOT NULL,
    "account_id" BIGINT NOT NULL,
    "event_type" TEXT NOT NULL,
    "timestamp" TEXT NOT NULL,
    "data" JSON NOT NULL,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "fanned_out_at" TIMESTAMPTZ(6),

    CONSTRAINT "events_pkey" PRIMARY KEY ("day","id")
) PARTITION BY RANGE ("day");

-- CreateTable
CREATE TABLE "outbox" (
    "sequence" BIGSERIAL NOT NULL,
    "day" DATE NOT NULL,
    "event_id" TEXT NOT NULL,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "deliveries" (
    "day" DATE NOT NULL,
    "id" TEXT NOT NULL,
    "account_id" BIGINT NOT NULL,
    "subscription_id" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "event_type" TEXT NOT NULL,
    "job_id" BIGINT NOT NULL,
    "run_id" BIGINT NOT NULL,
    "webhook_name" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "reason" TEXT,
    "cycle" INTEGER NOT NULL DEFAULT 0,
    "trigger" TEXT NOT NULL DEFAULT 'automatic',
    "attempt_count" INTEGER NOT NULL DEFAULT 0,
    "http_status_code" INTEGER NOT NULL DEFAULT 0,
    "duration_ms" INTEGER,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "completed_at" TIMESTAMPTZ(6),
    "next_attempt_at" TIMESTAMPTZ(6),

    CONSTRAINT "deliveries_pkey" PRIMARY KEY ("day","id")
) PARTITION BY RANGE ("day");

-- CreateTable
CREATE TABLE "attempts" (
    "day" DATE NOT NULL,
    "delivery_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "trigger" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(6) NOT NULL,
    "duration_ms" INTEGER NOT NULL,
    "http_status_code" INTEGER NOT NULL,
    "error_code" TEXT,
    "error_message" TEXT,
    "request_headers" JSON NOT NULL,
    "response_headers" JSON,
    "response_body" TEXT,
    "response_truncated" BOOLEAN NOT NULL,

    CONSTRAINT "attempts_pkey" PRIMARY KEY ("day","delivery_id","number")
) PARTITION BY RANGE ("day");

-- CreateIndex
CREATE UNIQUE INDEX "accounts_identifier_key" ON "accounts"("identifier");

-- CreateIndex
CREATE UNIQUE INDEX "users_email_key" ON "users"("email");

-- CreateIndex
CREATE UNIQUE INDEX "users_api_key_hash_key" ON "users"("api_key_hash");

-- CreateIndex
CREATE INDEX "memberships_user_id_idx" ON "memberships"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "service_tokens_token_hash_key" ON "service_tokens"("token_hash");

-- CreateIndex
CREATE INDEX "service_tokens_account_id_idx" ON "service_tokens"("account_id");

-- CreateIndex
CREATE UNIQUE INDEX "projects_account_id_name_key" ON "projects"("account_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "environments_account_id_name_key" ON "environments"("account_id", "name");

-- CreateIndex
CREATE INDEX "jobs_account_id_idx" ON "jobs"("account_id");

-- CreateIndex
CREATE INDEX "runs_account_id_created_at_idx" ON "runs"("account_id", "created_at" DESC);

-- CreateIndex
CREATE INDEX "subscriptions_account_id_created_at_id_idx" ON "subscriptions"("account_id", "created_at" DESC, "id");

-- CreateIndex
CREATE INDEX "deliveries_subscription_id_day_created_at_id_idx" ON "deliveries"("subscription_id", "day", "created_at", "id");

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "service_tokens" ADD CONSTRAINT "service_tokens_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "projects" ADD CONSTRAINT "projects_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "environments" ADD CONSTRAINT "environments_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "subscriptions" ADD CONSTRAINT "subscriptions_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What Prisma's schema cannot say

ALTER TABLE "accounts"
  ADD CONSTRAINT "accounts_plan_check" CHECK ("plan" IN ('free', 'developer', 'team', 'enterprise')),
  ADD CONSTRAINT "accounts_deployment_check"
    CHECK ("deployment" IN ('multi_tenant', 'single_tenant_public_cloud', 'single_tenant_private'));

ALTER TABLE "memberships"
  ADD CONSTRAINT "memberships_license_check" CHECK ("license" IN ('developer', 'read_only', 'it'));

ALTER TABLE "runs"
  ADD CONSTRAINT "runs_status_check" CHECK ("status" IN ('Running', 'Success', 'Errored', 'Canceled'));

ALTER TABLE "deliveries"
  ADD CONSTRAINT "deliveries_status_check" CHECK ("status" IN ('pending', 'delivered', 'failed', 'cancelled')),
  ADD CONSTRAINT "deliveries_trigger_check" CHECK ("trigger" IN ('automatic', 'manual'));

-- What an interrupted event job has left to do. Small: it holds pending deliveries only.
CREATE INDEX "deliveries_pending_idx" ON "deliveries" ("event_id") WHERE "status" = 'pending';

-- Rows whose day has no partition of its own yet: a missing partition never stops a delivery.
CREATE TABLE "events_default" PARTITION OF "events" DEFAULT;
CREATE TABLE "deliveries_default" PARTITION OF "deliveries" DEFAULT;
CREATE TABLE "attempts_default" PARTITION OF "attempts" DEFAULT;

-- Makes the day partitions from first_day to last_day that are missing, and answers how many it made. Rows of such
-- a day that wait in the default partition move into it. The lock makes callers take turns.
CREATE FUNCTION "ensure_day_partitions"(first_day date, last_day date) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  parent text;
  partition_day date;
  partition_name text;
  made integer := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
  FOREACH parent IN ARRAY ARRAY['events', 'deliveries', 'attempts'] LOOP
    FOR partition_day IN SELECT generate_series(first_day, last_day, interval '1 day')::date LOOP
      partition_name := parent || '_' || to_char(partition_day, 'YYYYMMDD');
      CONTINUE WHEN to_regclass(partition_name) IS NOT NULL;
      EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition_name, parent);
      EXECUTE format(
        'WITH moved AS (DELETE FROM %I WHERE "day" = %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
        parent || '_default', partition_day, partition_name);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
        parent, partition_name, partition_day, partition_day + 1);
      made := made + 1;
    END LOOP;
  END LOOP;
  RETURN made;
END
$$;
