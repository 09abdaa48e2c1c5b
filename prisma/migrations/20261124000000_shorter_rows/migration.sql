-- What an event writes, in fewer bytes (docs/adr/0053-shorter-rows.md).

-- DropIndex
-- allows require-concurrent-index-deletion: services stand still for the migrations of this release.
-- Each run changed it, for what looks at runs once in a while: that goes by account and time, which have an index.
DROP INDEX "runs_created_at_idx";

-- AlterTable
-- An event's key holds that there is one of it: this table only has to be looked into. No row is as another, should anybody
-- replicate it by its rows.
ALTER TABLE "open_events" DROP CONSTRAINT "open_events_pkey";
ALTER TABLE "open_events" REPLICA IDENTITY FULL;

-- What Prisma's schema cannot say

-- The first seven digits of a KSUID are its second and a thousandth of what makes it its own: few events have the same.
-- allows require-concurrent-index-creation: it holds few rows, or none.
CREATE INDEX "open_events_digits_idx" ON "open_events" (substr("event_id", 5, 7));
