-- Who changed what of an account, and when. Triggers write it, in the transaction of the change, whoever makes it and however;
-- who that is stands in a setting of the transaction, and nobody's is an operator's.

-- CreateTable
CREATE TABLE "audit_entries" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "action" TEXT NOT NULL,
    "actor_kind" TEXT NOT NULL,
    "actor_id" TEXT,
    "actor_name" TEXT,
    "target_kind" TEXT NOT NULL,
    "target_id" TEXT NOT NULL,
    "target_name" TEXT NOT NULL,
    "details" JSONB NOT NULL DEFAULT '{}',
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_entries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "audit_entries_account_id_id_idx" ON "audit_entries"("account_id", "id" DESC);

-- CreateIndex
CREATE INDEX "audit_entries_created_at_idx" ON "audit_entries" USING BRIN ("created_at");

-- What Prisma's schema cannot say

ALTER TABLE "audit_entries"
  ADD COLUMN "created_at_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("created_at")) STORED;

-- Written once. What is a year old may go.
CREATE FUNCTION "audit_is_append_only"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD."created_at" < now() - interval '365 days' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER "audit_entries_append_only" BEFORE UPDATE OR DELETE
  ON "audit_entries" FOR EACH ROW EXECUTE FUNCTION "audit_is_append_only"();
CREATE TRIGGER "audit_entries_not_emptied" BEFORE TRUNCATE
  ON "audit_entries" FOR EACH STATEMENT EXECUTE FUNCTION "audit_is_append_only"();

CREATE FUNCTION "audit_actor"() RETURNS jsonb
LANGUAGE sql STABLE
RETURN coalesce(nullif(current_setting('runhook.actor', true), ''), '{"kind": "operator"}')::jsonb;

CREATE FUNCTION "audit"(account bigint, action text, target_kind text, target_id text, target_name text, details jsonb, actor jsonb)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO "audit_entries"
    ("account_id", "action", "actor_kind", "actor_id", "actor_name", "target_kind", "target_id", "target_name", "details")
  VALUES (
    account, action, actor ->> 'kind', actor ->> 'id',
    CASE actor ->> 'kind'
      WHEN 'user' THEN (SELECT "email" FROM "users" WHERE "id" = (actor ->> 'id')::bigint)
      WHEN 'service_token' THEN (SELECT "name" FROM "service_tokens" WHERE "id" = (actor ->> 'id')::bigint)
    END,
    target_kind, target_id, coalesce(target_name, ''), details)
$$;

CREATE FUNCTION "audit_subscription"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  actor jsonb := "audit_actor"();
  service CONSTANT jsonb := '{"kind": "service"}';
  changed text[];
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM "audit"(NEW."account_id", 'webhook.created', 'webhook', NEW."id", NEW."name", '{}', actor);
    RETURN NULL;
  END IF;
  IF NEW."deleted_at" IS NOT NULL THEN
    IF OLD."deleted_at" IS NULL THEN
      PERFORM "audit"(NEW."account_id", 'webhook.deleted', 'webhook', NEW."id", NEW."name", '{}', actor);
    END IF;
    RETURN NULL;
  END IF;
  IF OLD."active" AND NOT NEW."active" AND NEW."deactivate_reason" IS NOT NULL THEN
    PERFORM "audit"(NEW."account_id", 'webhook.deactivated', 'webhook', NEW."id", NEW."name",
      jsonb_build_object('reason', NEW."deactivate_reason"), service);
    RETURN NULL;
  END IF;
  IF NEW."secret_generation" <> OLD."secret_generation" THEN
    PERFORM "audit"(NEW."account_id", 'secret.rotated', 'webhook', NEW."id", NEW."name", '{}', actor);
  ELSIF OLD."rotation_ends_at" IS NOT NULL AND NEW."rotation_ends_at" IS NULL THEN
    PERFORM "audit"(NEW."account_id", 'secret.rotation_finished', 'webhook', NEW."id", NEW."name", '{}',
      CASE WHEN OLD."rotation_ends_at" <= now() THEN service ELSE actor END);
  END IF;
  -- Another ciphertext alone, by nobody, is the work of `secrets reencrypt`.
  changed := array_remove(ARRAY[
    CASE WHEN NEW."name" <> OLD."name" THEN 'name' END,
    CASE WHEN NEW."description" <> OLD."description" THEN 'description' END,
    CASE WHEN NEW."event_types" <> OLD."event_types" THEN 'event_types' END,
    CASE WHEN NEW."job_ids" <> OLD."job_ids" THEN 'job_ids' END,
    CASE WHEN NEW."client_url" <> OLD."client_url" THEN 'client_url' END,
    CASE WHEN NEW."active" <> OLD."active" THEN 'active' END,
    CASE WHEN NEW."signature_header" IS DISTINCT FROM OLD."signature_header" THEN 'signature_header' END,
    CASE WHEN NEW."header_names" <> OLD."header_names" OR (actor ->> 'kind' <> 'operator'
      AND NEW."headers_ciphertext" IS DISTINCT FROM OLD."headers_ciphertext") THEN 'headers' END
  ], NULL);
  IF cardinality(changed) > 0 THEN
    PERFORM "audit"(NEW."account_id", 'webhook.changed', 'webhook', NEW."id", NEW."name",
      jsonb_build_object('changed', changed), actor);
  END IF;
  RETURN NULL;
END
$$;

-- Not for what the dispatchers write after attempts: a trigger of columns does not run for an update of others.
CREATE TRIGGER "subscriptions_audit" AFTER INSERT OR UPDATE OF "name", "description", "event_types", "job_ids", "client_url",
    "active", "signature_header", "header_names", "headers_ciphertext", "deleted_at", "secret_generation", "rotation_ends_at"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "audit_subscription"();

CREATE FUNCTION "audit_membership"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  member RECORD;
BEGIN
  IF TG_OP = 'UPDATE' AND NEW IS NOT DISTINCT FROM OLD THEN
    RETURN NULL;
  END IF;
  member := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  PERFORM "audit"(member."account_id",
    CASE TG_OP WHEN 'INSERT' THEN 'member.added' WHEN 'UPDATE' THEN 'member.changed' ELSE 'member.removed' END,
    'user', member."user_id"::text, (SELECT "email" FROM "users" WHERE "id" = member."user_id"),
    CASE TG_OP WHEN 'DELETE' THEN '{}'
      ELSE jsonb_build_object('license', member."license", 'permission_sets', member."permission_sets") END,
    "audit_actor"());
  RETURN NULL;
END
$$;

CREATE TRIGGER "memberships_audit" AFTER INSERT OR UPDATE OR DELETE
  ON "memberships" FOR EACH ROW EXECUTE FUNCTION "audit_membership"();

CREATE FUNCTION "audit_service_token"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM "audit"(NEW."account_id", 'token.created', 'service_token', NEW."id"::text, NEW."name",
      jsonb_build_object('permission_sets', NEW."permission_sets"), "audit_actor"());
  ELSIF OLD."revoked_at" IS NULL AND NEW."revoked_at" IS NOT NULL THEN
    PERFORM "audit"(NEW."account_id", 'token.revoked', 'service_token', NEW."id"::text, NEW."name", '{}', "audit_actor"());
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER "service_tokens_audit" AFTER INSERT OR UPDATE OF "revoked_at"
  ON "service_tokens" FOR EACH ROW EXECUTE FUNCTION "audit_service_token"();

-- What concerns a user is told in each account that the user is a member of.
CREATE FUNCTION "audit_user"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF NEW."api_key_hash" <> OLD."api_key_hash" THEN
    PERFORM "audit"(m."account_id", 'api_key.rotated', 'user', NEW."id"::text, NEW."email", '{}', "audit_actor"())
      FROM "memberships" m WHERE m."user_id" = NEW."id";
  END IF;
  IF NEW."password_hash" IS DISTINCT FROM OLD."password_hash" THEN
    PERFORM "audit"(m."account_id", 'password.reset', 'user', NEW."id"::text, NEW."email", '{}', "audit_actor"())
      FROM "memberships" m WHERE m."user_id" = NEW."id";
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER "users_audit" AFTER UPDATE OF "api_key_hash", "password_hash"
  ON "users" FOR EACH ROW EXECUTE FUNCTION "audit_user"();

CREATE FUNCTION "audit_session"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM "audit"(m."account_id", 'session.signed_in', 'user', u."id"::text, u."email",
      jsonb_strip_nulls(jsonb_build_object('address', "audit_actor"() ->> 'address')),
      jsonb_build_object('kind', 'user', 'id', u."id"))
    FROM "memberships" m JOIN "users" u ON u."id" = m."user_id" WHERE m."user_id" = NEW."user_id";
  RETURN NULL;
END
$$;

CREATE TRIGGER "console_sessions_audit" AFTER INSERT
  ON "console_sessions" FOR EACH ROW EXECUTE FUNCTION "audit_session"();

CREATE FUNCTION "audit_account"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  changed text[] := array_remove(ARRAY[
    CASE WHEN NEW."name" <> OLD."name" THEN 'name' END,
    CASE WHEN NEW."plan" <> OLD."plan" THEN 'plan' END,
    CASE WHEN NEW."deployment" <> OLD."deployment" THEN 'deployment' END
  ], NULL);
BEGIN
  IF cardinality(changed) > 0 THEN
    PERFORM "audit"(NEW."id", 'account.changed', 'account', NEW."id"::text, NEW."name",
      jsonb_build_object('changed', changed, 'plan', NEW."plan", 'deployment', NEW."deployment"), "audit_actor"());
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER "accounts_audit" AFTER UPDATE OF "name", "plan", "deployment"
  ON "accounts" FOR EACH ROW EXECUTE FUNCTION "audit_account"();
