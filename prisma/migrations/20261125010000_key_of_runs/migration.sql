-- What a report says of a run is found by its key, from the first run on (docs/adr/0053-shorter-rows.md).

-- AlterTable
-- Of two indexes that cost the same PostgreSQL takes the newer one: while there are few runs, and nobody has counted them, a run was
-- looked for among all of its account by the index of their times, in a plan that is kept. Now the key is the newer one.
-- allows adding-serial-primary-key-field, constraint-missing-not-valid: services stand still for this one, and the key is what it is for.
ALTER TABLE "runs" DROP CONSTRAINT "runs_pkey";
ALTER TABLE "runs" ADD CONSTRAINT "runs_pkey" PRIMARY KEY ("account_id", "id");
