-- Finds the deliveries of a run in a log of any length. The run's number alone: eight bytes that mostly grow, so that a
-- delivery adds one small entry at the end of the index, and all deliveries of a run share one.

-- CreateIndex
CREATE INDEX "deliveries_run_id_idx" ON "deliveries"("run_id");
