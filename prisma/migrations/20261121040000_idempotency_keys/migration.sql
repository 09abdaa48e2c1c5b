-- The first answers to requests that brought an Idempotency-Key.

-- CreateTable
CREATE TABLE "idempotency_keys" (
    "id" TEXT NOT NULL,
    "body_hash" BYTEA NOT NULL,
    "claim" TEXT NOT NULL,
    "claimed_until" TIMESTAMPTZ(6) NOT NULL,
    "answer_ciphertext" TEXT,
    "expires_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "idempotency_keys_expires_at_idx" ON "idempotency_keys"("expires_at");
