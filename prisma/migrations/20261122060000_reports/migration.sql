-- Reports of runs are committed many at once, by processes that remember who calls and which job it is, and their events
-- go from the memory of whoever committed them to the queue: no outbox. An event that is not fanned out is its own.

-- CreateTable
CREATE TABLE "remembered_version" (
    "id" BOOLEAN NOT NULL DEFAULT true,
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "remembered_version_pkey" PRIMARY KEY ("id")
);

-- DropTable
DROP TABLE "outbox";

-- What Prisma's schema cannot say

ALTER TABLE "remembered_version" ADD CONSTRAINT "remembered_version_single" CHECK ("id");
INSERT INTO "remembered_version" DEFAULT VALUES;

-- Once for a transaction, whatever it changes: it must not walk along as many versions of the row as it made.
CREATE FUNCTION "what_is_remembered_changed"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE "remembered_version" SET "version" = "version" + 1 WHERE "xmin" <> pg_current_xact_id()::xid;
  RETURN NULL;
END
$$;

-- Whoever changes what is remembered, and however, raises the version. At the commit, so that its row is what every
-- transaction locks last, and no two of them wait for each other in a circle.
CREATE CONSTRAINT TRIGGER "users_remembered" AFTER DELETE OR UPDATE OF "api_key_hash"
  ON "users" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
CREATE CONSTRAINT TRIGGER "memberships_remembered" AFTER INSERT OR DELETE OR UPDATE
  ON "memberships" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
CREATE CONSTRAINT TRIGGER "service_tokens_remembered" AFTER DELETE OR UPDATE
  ON "service_tokens" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
CREATE CONSTRAINT TRIGGER "accounts_remembered" AFTER DELETE OR UPDATE OF "identifier", "plan", "deployment"
  ON "accounts" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
CREATE CONSTRAINT TRIGGER "jobs_remembered" AFTER DELETE OR UPDATE
  ON "jobs" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
CREATE CONSTRAINT TRIGGER "projects_remembered" AFTER DELETE OR UPDATE OF "name"
  ON "projects" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
CREATE CONSTRAINT TRIGGER "environments_remembered" AFTER DELETE OR UPDATE OF "name"
  ON "environments" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "what_is_remembered_changed"();
