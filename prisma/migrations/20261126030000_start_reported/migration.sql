-- Whether the start of a run was reported. A run is recorded from any of its events, so its start may never be reported.
-- Existing rows get the value that releases before assumed for them.
ALTER TABLE "runs" ADD COLUMN "start_reported" BOOLEAN NOT NULL DEFAULT true;
