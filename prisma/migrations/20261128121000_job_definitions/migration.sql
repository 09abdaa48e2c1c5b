-- A job has the fields that clients of this API family store in it, and is hidden instead of deleted, because its runs refer to it.

-- AlterTable
ALTER TABLE "jobs"
    ADD COLUMN "definition" JSONB,
    ADD COLUMN "updated_at" TIMESTAMPTZ(6),
    ADD COLUMN "deleted_at" TIMESTAMPTZ(6);

-- Not expressible in Prisma's schema

-- Reports of runs need the names and ids of a job only: another change must not make all processes read their callers and jobs again.
-- allows drops-what-is-called: the next statement creates the trigger again, in the same transaction, for fewer columns.
DROP TRIGGER "jobs_cache_version" ON "jobs";
CREATE CONSTRAINT TRIGGER "jobs_cache_version"
  AFTER DELETE OR UPDATE OF "name", "project_id", "environment_id", "deleted_at"
  ON "jobs" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "advance_cache_version"();
