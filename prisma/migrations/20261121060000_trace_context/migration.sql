-- The trace that an event belongs to, as text to carry on: from the call that caused it to the queue.
-- Null when management exports no traces.
ALTER TABLE "events" ADD COLUMN "trace_context" TEXT;
