import { type Queryable, runStatement } from '@runhook/database';

const DELETE_EXPIRED = 'DELETE FROM idempotency_keys WHERE expires_at <= now()';

/** Management looks at no key after its day, and leaves it to be swept away. */
export async function deleteExpiredIdempotencyKeys(database: Queryable): Promise<void> {
  await runStatement(database, DELETE_EXPIRED, [], 'delete-expired-idempotency-keys');
}
