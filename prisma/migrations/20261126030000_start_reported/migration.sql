-- Whether the start of a run was reported. Runs are recorded from any of their events, so one may be known that never
-- reported its start. Of runs that are on record already it is not known; they keep the value that they had in effect.
ALTER TABLE "runs" ADD COLUMN "start_reported" BOOLEAN NOT NULL DEFAULT true;
