-- How long each phase of an attempt took. Null where a phase did not take place: a kept connection has only the last
-- two. All null when nothing was sent.
ALTER TABLE "attempts"
  ADD COLUMN "dns_ms" INTEGER,
  ADD COLUMN "connect_ms" INTEGER,
  ADD COLUMN "tls_ms" INTEGER,
  ADD COLUMN "first_byte_ms" INTEGER,
  ADD COLUMN "total_ms" INTEGER;
