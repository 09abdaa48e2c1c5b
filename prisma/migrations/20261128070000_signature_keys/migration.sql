-- A webhook may have an Ed25519 key pair, which signs in addition to its secret (docs/contract.md#signing).

-- AlterTable
ALTER TABLE "subscriptions"
  ADD COLUMN "signature_key_ciphertext" TEXT,
  ADD COLUMN "signature_public_key" TEXT,
  ADD COLUMN "next_signature_key_ciphertext" TEXT,
  ADD COLUMN "next_signature_public_key" TEXT;

-- Not expressible in Prisma's schema

-- A rotation replaces either the secret or the key pair.
-- allows constraint-missing-not-valid: the table has one row for each webhook, so the check takes milliseconds.
ALTER TABLE "subscriptions" DROP CONSTRAINT "subscriptions_rotation_check",
  ADD CONSTRAINT "subscriptions_rotation_check" CHECK (
    num_nonnulls("rotation_started_at", "rotation_ends_at") =
      2 * num_nonnulls("next_hmac_secret_ciphertext", "next_signature_key_ciphertext")),
  ADD CONSTRAINT "subscriptions_signature_key_check" CHECK (
    num_nonnulls("signature_key_ciphertext", "signature_public_key") IN (0, 2)
    AND num_nonnulls("next_signature_key_ciphertext", "next_signature_public_key") IN (0, 2)
    AND ("next_signature_key_ciphertext" IS NULL OR "signature_key_ciphertext" IS NOT NULL));

CREATE TRIGGER "subscriptions_signature_key_next_version"
  BEFORE UPDATE OF "signature_key_ciphertext", "next_signature_key_ciphertext"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "next_subscription_version"();
CREATE CONSTRAINT TRIGGER "subscriptions_signature_key_version"
  AFTER UPDATE OF "signature_key_ciphertext", "next_signature_key_ciphertext"
  ON "subscriptions" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION "subscriptions_are_changed"();

-- For the names of the encryption keys in use.
-- allows require-concurrent-index-creation: no row has a key yet, so both indexes are empty.
CREATE INDEX "subscriptions_signature_key_name_idx" ON "subscriptions" (split_part("signature_key_ciphertext", '.', 1))
  WHERE "active" AND "deleted_at" IS NULL AND "signature_key_ciphertext" IS NOT NULL;
CREATE INDEX "subscriptions_next_signature_key_name_idx"
  ON "subscriptions" (split_part("next_signature_key_ciphertext", '.', 1))
  WHERE "active" AND "deleted_at" IS NULL AND "next_signature_key_ciphertext" IS NOT NULL;

-- Separate from "audit_subscription", whose columns a re-encryption of the private key does not change.
CREATE FUNCTION "audit_signature_key"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  old_key text := coalesce(OLD."next_signature_public_key", OLD."signature_public_key");
  new_key text := coalesce(NEW."next_signature_public_key", NEW."signature_public_key");
BEGIN
  IF (old_key IS NULL) <> (new_key IS NULL) THEN
    PERFORM "audit"(NEW."account_id", 'webhook.changed', 'webhook', NEW."id", NEW."name",
      jsonb_build_object('changed', ARRAY['signature_key']), "audit_actor"());
  ELSIF old_key <> new_key THEN
    PERFORM "audit"(NEW."account_id", 'signature_key.rotated', 'webhook', NEW."id", NEW."name", '{}', "audit_actor"());
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER "subscriptions_audit_signature_key"
  AFTER UPDATE OF "signature_public_key", "next_signature_public_key"
  ON "subscriptions" FOR EACH ROW EXECUTE FUNCTION "audit_signature_key"();
