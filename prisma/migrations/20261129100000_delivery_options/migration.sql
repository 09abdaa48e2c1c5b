-- Options of a webhook: format, filters, order, rate limit, labels and deactivation by 410 (docs/contract.md#delivery-options).
-- Null and false mean unset; dispatchers then deliver as without the columns.

-- AlterTable
ALTER TABLE "subscriptions"
  ADD COLUMN "format" TEXT,
  ADD COLUMN "format_option_names" TEXT[] DEFAULT ARRAY[]::TEXT[],
  ADD COLUMN "format_options_ciphertext" TEXT,
  ADD COLUMN "filters" JSONB,
  ADD COLUMN "ordered" BOOLEAN NOT NULL DEFAULT false,
  ADD COLUMN "rate_limit" DOUBLE PRECISION,
  ADD COLUMN "labels" JSONB,
  ADD COLUMN "deactivate_on_410" BOOLEAN NOT NULL DEFAULT false;

-- Not expressible in Prisma's schema

-- allows constraint-missing-not-valid: the table has one row for each webhook, so the check takes milliseconds.
ALTER TABLE "subscriptions"
  ADD CONSTRAINT "subscriptions_format_options_check"
    CHECK (("format_options_ciphertext" IS NULL) = (cardinality("format_option_names") = 0)),
  ADD CONSTRAINT "subscriptions_rate_limit_check" CHECK ("rate_limit" > 0);

-- Dispatchers cache all options except labels.
CREATE TRIGGER "subscriptions_options_next_version"
  BEFORE UPDATE OF "format", "format_options_ciphertext", "filters", "ordered", "rate_limit", "deactivate_on_410"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "next_subscription_version"();
CREATE CONSTRAINT TRIGGER "subscriptions_options_version"
  AFTER UPDATE OF "format", "format_options_ciphertext", "filters", "ordered", "rate_limit", "deactivate_on_410"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();

-- For the names of the encryption keys in use.
-- allows require-concurrent-index-creation: no row has options yet, so the index is empty.
CREATE INDEX "subscriptions_format_options_key_name_idx"
  ON "subscriptions" (split_part("format_options_ciphertext", '.', 1))
  WHERE "active" AND "deleted_at" IS NULL AND "format_options_ciphertext" IS NOT NULL;

CREATE OR REPLACE FUNCTION "audit_subscription"() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
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
  -- An operator who changes only a ciphertext re-encrypts it.
  changed := array_remove(ARRAY[
    CASE WHEN NEW."name" <> OLD."name" THEN 'name' END,
    CASE WHEN NEW."description" <> OLD."description" THEN 'description' END,
    CASE WHEN NEW."event_types" <> OLD."event_types" THEN 'event_types' END,
    CASE WHEN NEW."job_ids" <> OLD."job_ids" THEN 'job_ids' END,
    CASE WHEN NEW."client_url" <> OLD."client_url" THEN 'client_url' END,
    CASE WHEN NEW."active" <> OLD."active" THEN 'active' END,
    CASE WHEN NEW."signature_header" IS DISTINCT FROM OLD."signature_header" THEN 'signature_header' END,
    CASE WHEN NEW."header_names" <> OLD."header_names" OR (actor ->> 'kind' <> 'operator'
      AND NEW."headers_ciphertext" IS DISTINCT FROM OLD."headers_ciphertext") THEN 'headers' END,
    CASE WHEN NEW."format" IS DISTINCT FROM OLD."format" THEN 'format' END,
    CASE WHEN NEW."format_option_names" <> OLD."format_option_names" OR (actor ->> 'kind' <> 'operator'
      AND NEW."format_options_ciphertext" IS DISTINCT FROM OLD."format_options_ciphertext") THEN 'format_options' END,
    CASE WHEN NEW."filters" IS DISTINCT FROM OLD."filters" THEN 'filters' END,
    CASE WHEN NEW."ordered" <> OLD."ordered" THEN 'ordered' END,
    CASE WHEN NEW."rate_limit" IS DISTINCT FROM OLD."rate_limit" THEN 'rate_limit' END,
    CASE WHEN NEW."labels" IS DISTINCT FROM OLD."labels" THEN 'labels' END,
    CASE WHEN NEW."deactivate_on_410" <> OLD."deactivate_on_410" THEN 'deactivate_on_410' END
  ], NULL);
  IF cardinality(changed) > 0 THEN
    PERFORM "audit"(NEW."account_id", 'webhook.changed', 'webhook', NEW."id", NEW."name",
      jsonb_build_object('changed', changed), actor);
  END IF;
  RETURN NULL;
END
$$;

-- A trigger of columns does not run for an update of others, such as those that dispatchers write after attempts.
CREATE OR REPLACE TRIGGER "subscriptions_audit" AFTER INSERT OR UPDATE OF "name", "description", "event_types", "job_ids", "client_url",
    "active", "signature_header", "header_names", "headers_ciphertext", "deleted_at", "secret_generation", "rotation_ends_at",
    "format", "format_option_names", "format_options_ciphertext", "filters", "ordered", "rate_limit", "labels",
    "deactivate_on_410"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "audit_subscription"();
