-- Sessions store where they were opened, and service tokens when they were last used. The audit log has the ends of sessions by their
-- user, and the memberships of a deleted user with its e-mail address.

-- AlterTable
ALTER TABLE "console_sessions" ADD COLUMN "client_address" TEXT, ADD COLUMN "browser" TEXT;

-- AlterTable
ALTER TABLE "service_tokens" ADD COLUMN "last_used_at" TIMESTAMPTZ(6);

-- Not expressible in Prisma's schema

-- The last use changes no permission: it must not advance the version, which makes all cached callers outdated.
-- allows drops-what-is-called: the next statement creates the trigger again, in the same transaction, for the other columns.
DROP TRIGGER "service_tokens_cache_version" ON "service_tokens";
CREATE CONSTRAINT TRIGGER "service_tokens_cache_version"
  AFTER DELETE OR UPDATE OF "account_id", "token_hash", "permission_sets", "expires_at", "revoked_at"
  ON "service_tokens" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "advance_cache_version"();

-- Deletes the memberships while the user still exists, so that their audit entries have the e-mail address.
CREATE FUNCTION "delete_memberships_of_user"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM "memberships" WHERE "user_id" = OLD."id";
  RETURN OLD;
END
$$;

CREATE TRIGGER "users_delete_memberships" BEFORE DELETE
  ON "users" FOR EACH ROW EXECUTE FUNCTION "delete_memberships_of_user"();

-- A user changes the password, an operator resets it. Each account of the user has the entry.
CREATE OR REPLACE FUNCTION "audit_user"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  actor jsonb := "audit_actor"();
BEGIN
  IF NEW."api_key_hash" <> OLD."api_key_hash" THEN
    PERFORM "audit"(m."account_id", 'api_key.rotated', 'user', NEW."id"::text, NEW."email", '{}', actor)
      FROM "memberships" m WHERE m."user_id" = NEW."id";
  END IF;
  IF NEW."password_hash" IS DISTINCT FROM OLD."password_hash" THEN
    PERFORM "audit"(m."account_id", CASE actor ->> 'kind' WHEN 'user' THEN 'password.changed' ELSE 'password.reset' END,
        'user', NEW."id"::text, NEW."email", jsonb_strip_nulls(jsonb_build_object('address', actor ->> 'address')), actor)
      FROM "memberships" m WHERE m."user_id" = NEW."id";
  END IF;
  RETURN NULL;
END
$$;

-- One entry for each statement of a user that ends sessions. Without a user, sessions are deleted because they have expired, or with
-- a change that has an entry.
CREATE FUNCTION "audit_ended_sessions"() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  actor jsonb := "audit_actor"();
BEGIN
  IF actor ->> 'kind' = 'user' THEN
    PERFORM "audit"(m."account_id", 'session.ended', 'user', u."id"::text, u."email",
        jsonb_strip_nulls(jsonb_build_object('address', actor ->> 'address', 'sessions', e."count")), actor)
      FROM (SELECT "user_id", count(*) AS "count" FROM "ended" GROUP BY "user_id") e
      JOIN "users" u ON u."id" = e."user_id"
      JOIN "memberships" m ON m."user_id" = u."id";
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER "console_sessions_ended_audit" AFTER DELETE
  ON "console_sessions" REFERENCING OLD TABLE AS "ended" FOR EACH STATEMENT EXECUTE FUNCTION "audit_ended_sessions"();
