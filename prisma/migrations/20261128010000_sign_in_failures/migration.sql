-- Failed sign-ins in the audit log. Its entries cannot be changed, so failures are counted in a table, and the dispatchers
-- delete the row of a window that has ended, which writes the entry.

-- CreateTable
CREATE TABLE "sign_in_failures" (
    "user_id" BIGINT NOT NULL,
    "network" TEXT NOT NULL,
    "window_start" TIMESTAMPTZ(6) NOT NULL,
    "count" INTEGER NOT NULL,

    CONSTRAINT "sign_in_failures_pkey" PRIMARY KEY ("user_id", "network", "window_start")
);

-- AddForeignKey
ALTER TABLE "sign_in_failures" ADD CONSTRAINT "sign_in_failures_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Not expressible in Prisma's schema

CREATE FUNCTION "audit_sign_in_failures"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM "audit"(m."account_id", 'session.sign_in_failed', 'user', u."id"::text, u."email",
      jsonb_build_object('network', OLD."network", 'count', OLD."count",
        'window_start', "epoch_micros"(OLD."window_start")::text),
      '{"kind": "anonymous"}')
    FROM "memberships" m JOIN "users" u ON u."id" = m."user_id" WHERE m."user_id" = OLD."user_id";
  RETURN NULL;
END
$$;

CREATE TRIGGER "sign_in_failures_audit" AFTER DELETE
  ON "sign_in_failures" FOR EACH ROW EXECUTE FUNCTION "audit_sign_in_failures"();
