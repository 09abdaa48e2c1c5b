-- Where the reconciler is in what is overdue, so that its next turn, in whichever dispatcher, goes on from there.

-- CreateTable
CREATE TABLE "reconciler_places" (
    "half" TEXT NOT NULL,
    "after_moment" TIMESTAMPTZ(6) NOT NULL,
    "after_id" TEXT NOT NULL,

    CONSTRAINT "reconciler_places_pkey" PRIMARY KEY ("half")
);

-- What Prisma's schema cannot say

ALTER TABLE "reconciler_places" ADD CONSTRAINT "reconciler_places_half_check" CHECK ("half" IN ('event', 'delivery'));
