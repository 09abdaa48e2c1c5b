-- Sign-in by OpenID Connect: the identity of a user at the provider, and the last refresh token, by which the user's
-- access is checked again (docs/adr/0068-openid-connect.md).

-- CreateTable
CREATE TABLE "oidc_identities" (
    "id" BIGSERIAL NOT NULL,
    "user_id" BIGINT NOT NULL,
    "issuer" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "sid" TEXT,
    "refresh_token_ciphertext" TEXT,
    "created_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "checked_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "check_due_at" TIMESTAMPTZ(6) NOT NULL,
    "check_claim" TEXT,
    "claimed_until" TIMESTAMPTZ(6),
    "ended_at" TIMESTAMPTZ(6),

    CONSTRAINT "oidc_identities_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "oidc_identities_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- CreateIndex
CREATE UNIQUE INDEX "oidc_identities_user_id_key" ON "oidc_identities"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "oidc_identities_issuer_subject_key" ON "oidc_identities"("issuer", "subject");

-- AlterTable
ALTER TABLE "console_sessions" ADD COLUMN "oidc_sid" TEXT;

-- Prisma's schema cannot describe triggers.

-- A user of the identity provider has no password, whichever program sets one: it would outlive the access at the provider.
CREATE FUNCTION "reject_password_of_oidc_user"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM "oidc_identities" WHERE "user_id" = NEW."id") THEN
    RAISE EXCEPTION 'user % signs in at the identity provider and has no password', NEW."id"
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER "users_no_password_of_oidc_user" BEFORE UPDATE OF "password_hash" ON "users"
  FOR EACH ROW WHEN (NEW."password_hash" IS NOT NULL) EXECUTE FUNCTION "reject_password_of_oidc_user"();

-- Updates the user unconditionally: its row lock orders this transaction and a concurrent reset of the password.
CREATE FUNCTION "end_password_of_oidc_user"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "users" SET "password_hash" = NULL WHERE "id" = NEW."user_id";
  DELETE FROM "console_sessions" WHERE "user_id" = NEW."user_id";
  RETURN NULL;
END
$$;
CREATE TRIGGER "oidc_identities_end_password" AFTER INSERT ON "oidc_identities"
  FOR EACH ROW EXECUTE FUNCTION "end_password_of_oidc_user"();

-- Ends the sessions with the access, in the same transaction.
CREATE FUNCTION "end_access_of_oidc_user"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "console_sessions" WHERE "user_id" = NEW."user_id";
  PERFORM "audit"(m."account_id", 'access.ended', 'user', u."id"::text, u."email", '{}', '{"kind": "service"}')
    FROM "memberships" m JOIN "users" u ON u."id" = m."user_id" WHERE m."user_id" = NEW."user_id";
  RETURN NULL;
END
$$;
CREATE TRIGGER "oidc_identities_end_access" AFTER UPDATE OF "ended_at" ON "oidc_identities"
  FOR EACH ROW WHEN (OLD."ended_at" IS NULL AND NEW."ended_at" IS NOT NULL)
  EXECUTE FUNCTION "end_access_of_oidc_user"();

-- Cached callers with the user's API key are outdated.
CREATE CONSTRAINT TRIGGER "oidc_identities_cache_version" AFTER INSERT OR DELETE OR UPDATE OF "ended_at"
  ON "oidc_identities" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "advance_cache_version"();
