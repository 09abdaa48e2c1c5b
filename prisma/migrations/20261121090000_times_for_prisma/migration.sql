-- Lets management read and write subscriptions and recoveries through Prisma Client, whose dates end at the millisecond.

-- What Prisma's schema cannot say

-- Microseconds since the epoch. Immutable, as a generated column needs it: no time zone has a part in it.
CREATE FUNCTION "epoch_micros"(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (extract(epoch FROM moment AT TIME ZONE 'UTC') * 1000000)::bigint;

ALTER TABLE "subscriptions"
  ADD COLUMN "created_at_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("created_at")) STORED,
  ADD COLUMN "updated_at_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("updated_at")) STORED,
  ADD COLUMN "dispatched_at_micros" BIGINT GENERATED ALWAYS AS ("epoch_micros"("dispatched_at")) STORED;

ALTER TABLE "recoveries"
  ADD COLUMN "since_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("since")) STORED,
  ADD COLUMN "until_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("until")) STORED,
  ADD COLUMN "created_at_micros" BIGINT NOT NULL GENERATED ALWAYS AS ("epoch_micros"("created_at")) STORED,
  ADD COLUMN "completed_at_micros" BIGINT GENERATED ALWAYS AS ("epoch_micros"("completed_at")) STORED;

-- Two changes within a microsecond still differ.
CREATE FUNCTION "subscription_is_changed"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."updated_at" := GREATEST(clock_timestamp(), OLD."updated_at" + interval '1 microsecond');
  RETURN NEW;
END
$$;

-- `updated_at` is the owner's: not what the service does by itself, after an attempt or by making it inactive.
CREATE TRIGGER "subscriptions_updated_at" BEFORE UPDATE OF
    "name", "description", "event_types", "job_ids", "client_url", "active"
  ON "subscriptions" FOR EACH ROW
  WHEN (NEW."deactivate_reason" IS NULL OR OLD."deactivate_reason" IS NOT NULL)
  EXECUTE FUNCTION "subscription_is_changed"();
