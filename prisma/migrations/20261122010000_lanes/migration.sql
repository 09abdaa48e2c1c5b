-- A delivery that finds no slot in its lane waits here, not in the queue, and has no time of its next attempt.
ALTER TABLE "deliveries" ADD COLUMN "parked_at" TIMESTAMPTZ(6);

-- What a lane takes next, the oldest first; and the lanes themselves, one after another.
CREATE INDEX "deliveries_lane_idx" ON "deliveries" ("subscription_id", "day", "created_at", "id") WHERE "parked_at" IS NOT NULL;

-- What was parked for too long.
CREATE INDEX "deliveries_parked_idx" ON "deliveries" ("parked_at") WHERE "parked_at" IS NOT NULL;
