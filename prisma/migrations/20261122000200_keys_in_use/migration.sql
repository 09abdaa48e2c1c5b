-- Tells in a moment which keys the secrets in use are under, however many there are: a ciphertext begins with the name.

-- What Prisma's schema cannot say

CREATE INDEX "subscriptions_key_name_idx" ON "subscriptions" (split_part("hmac_secret_ciphertext", '.', 1))
  WHERE "active" AND "deleted_at" IS NULL;
