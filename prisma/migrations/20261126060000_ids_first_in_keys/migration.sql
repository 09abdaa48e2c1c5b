-- The keys of the log begin with the id. A partition has one day, so a key that begins with it leads to the whole partition: without
-- statistics PostgreSQL expects 200 days in each, takes that for few rows, and reads a day for a batch (docs/adr/0029-plans-and-batches.md).

-- AlterTable
-- allows adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "events" DROP CONSTRAINT "events_pkey";
ALTER TABLE "events" ADD CONSTRAINT "events_pkey" PRIMARY KEY ("id", "account_id", "day");

-- AlterTable
-- allows adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "attempts" DROP CONSTRAINT "attempts_pkey";
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_pkey" PRIMARY KEY ("delivery_id", "number", "account_id", "day");

-- AlterTable
-- allows adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "deliveries" DROP CONSTRAINT "deliveries_pkey";
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_pkey" PRIMARY KEY ("id", "account_id", "day");
