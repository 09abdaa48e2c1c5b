import { type Database, runStatement } from '@runhook/database';

type Pool = Database['pool'];

/** @param email in lower case. `passwordHash` is null when the user has no password. */
export async function findPasswordHash(
  pool: Pool,
  email: string,
): Promise<{ id: number; passwordHash: string | null } | null> {
  const [row] = await runStatement<{ id: string; password_hash: string | null }>(
    pool,
    'SELECT id, password_hash FROM users WHERE email = $1',
    [email],
  );
  return row ? { id: Number(row.id), passwordHash: row.password_hash } : null;
}

export interface UserRecord {
  id: number;
  email: string;
  name: string;
  apiKeyCiphertext: string;
}

/** @param apiKeyHash when given, the user is found only while this is still the key */
export async function findUser(
  pool: Pool,
  userId: number,
  apiKeyHash: Uint8Array | null,
): Promise<UserRecord | null> {
  const [row] = await runStatement<{ email: string; name: string; api_key_ciphertext: string }>(
    pool,
    `SELECT email, name, api_key_ciphertext FROM users
     WHERE id = $1 AND ($2::bytea IS NULL OR api_key_hash = $2)`,
    [userId, apiKeyHash],
  );
  return row
    ? { id: userId, email: row.email, name: row.name, apiKeyCiphertext: row.api_key_ciphertext }
    : null;
}

const REPLACE_API_KEY = `
  UPDATE users SET api_key_hash = $3, api_key_ciphertext = $4, api_key_created_at = now()
  WHERE id = $1 AND api_key_hash = $2 RETURNING id`;

/** Whether the key was still the current one and is the new one now. Of several at once, one succeeds. */
export async function replaceApiKey(
  pool: Pool,
  key: { userId: number; currentHash: Uint8Array; newHash: Uint8Array; newCiphertext: string },
): Promise<boolean> {
  const { userId, currentHash, newHash, newCiphertext } = key;
  const rows = await runStatement(pool, REPLACE_API_KEY, [userId, currentHash, newHash, newCiphertext]);
  return rows.length > 0;
}
