-- The account after which the next pass over the accounts with parked deliveries continues, whichever dispatcher makes it.

-- What Prisma's schema cannot say

-- allows constraint-missing-not-valid: the table has three rows at most.
ALTER TABLE "reconciler_places" DROP CONSTRAINT "reconciler_places_half_check",
  ADD CONSTRAINT "reconciler_places_half_check" CHECK ("half" IN ('event', 'delivery', 'pending_limit'));
