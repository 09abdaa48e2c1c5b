import { hash } from '@node-rs/argon2';
import { inTransaction, type Pool, runStatement } from '@runhook/database';

const SET = 'UPDATE users SET password_hash = $2 WHERE id = $1 RETURNING id';

// A statement of its own: it must see a session that a sign-in committed while SET waited for the user's row.
const END_SESSIONS = 'DELETE FROM console_sessions WHERE user_id = $1 RETURNING user_id';

/**
 * Sets the password and ends the console sessions of the user: a password that is reset because it is known to others
 * must not leave them one. Null when there is no such user. The API key stays.
 */
export async function resetPassword(
  pool: Pool,
  userId: number,
  password: string,
): Promise<{ sessionsEnded: number } | null> {
  const passwordHash = await hash(password);
  return await inTransaction(pool, async (transaction) => {
    const users = await runStatement(transaction, SET, [userId, passwordHash]);
    if (users.length === 0) return null;
    return { sessionsEnded: (await runStatement(transaction, END_SESSIONS, [userId])).length };
  });
}
