-- One row that each service writes every ten seconds while it writes nothing else, so that a record that cannot be written is
-- detected without a call.

-- CreateTable
CREATE TABLE "record_probe" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "written_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "record_probe_pkey" PRIMARY KEY ("id")
);

-- What Prisma's schema cannot say

ALTER TABLE "record_probe" ADD CONSTRAINT "record_probe_id_check" CHECK ("id" = 1);
ALTER TABLE "record_probe" SET (fillfactor = 10);

INSERT INTO "record_probe" DEFAULT VALUES;
