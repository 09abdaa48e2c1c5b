import { integerIdFromText } from '@runhook/contract';
import {
  createCredential,
  type Database,
  hashCredential,
  runStatement,
  type SecretBox,
} from '@runhook/database';
import { type CallerEndpoint, requiredUser } from '../http/endpoint.ts';
import {
  AccessDeniedError,
  type ApiError,
  ConflictError,
  InvalidTokenError,
  NotFoundError,
} from '../http/errors.ts';
import type { Credential } from './principals.ts';

/**
 * docs/contract.md#api-keys: replaces the caller's own key, when it calls with that key or from its own console session. The
 * change is committed before the answer is written, and no process remembers who held a key, so from then on the old
 * one is refused everywhere. An answer that is lost on its way leaves the new key on the profile page.
 */
export function rotateApiKeyEndpoint(deps: { pool: Database['pool']; secrets: SecretBox }): CallerEndpoint {
  return {
    method: 'POST',
    path: '/api/v2/users/:user_id/apikey',
    access: 'caller',
    async handle({ principal, credential, param }) {
      if (!/^\d+$/.test(param('user_id'))) throw new NotFoundError();
      const { userId } = requiredUser(principal);
      if (integerIdFromText(param('user_id')) !== userId) {
        throw new AccessDeniedError('Users may rotate their own API key only.');
      }
      const apiKey = createCredential('user');
      const replaced = await replaceApiKey(deps.pool, {
        userId,
        currentHash: credential.kind === 'key' ? credential.hash : credential.apiKeyHash,
        newHash: hashCredential(apiKey),
        newCiphertext: deps.secrets.encrypt(apiKey),
      });
      if (!replaced) throw tooLate(credential);
      return { code: 200, data: { user_id: userId, api_key: apiKey } };
    },
  };
}

/** Another rotation came first: a caller by key has become nobody; a session is still somebody's. */
function tooLate(credential: Credential): ApiError {
  return credential.kind === 'key'
    ? new InvalidTokenError()
    : new ConflictError('The API key was rotated by another request.');
}

/** What the profile page shows of its user. */
export interface Profile {
  user_id: number;
  email: string;
  name: string;
  api_key: string;
}

/**
 * The user's own record with the API key, for the profile page (docs/contract.md#api-keys). A caller by key is asked for again
 * with the read: whoever holds a key that is being rotated must not get the new one.
 */
export function profileEndpoint(deps: { pool: Database['pool']; secrets: SecretBox }): CallerEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/profile',
    access: 'caller',
    async handle({ principal, credential }) {
      const { userId } = requiredUser(principal);
      const currentHash = credential.kind === 'key' ? credential.hash : null;
      const user = await findUser(deps.pool, userId, currentHash);
      if (!user) throw new InvalidTokenError();
      const { email, name, apiKeyCiphertext } = user;
      const api_key = deps.secrets.decrypt(apiKeyCiphertext);
      return { code: 200, data: { user_id: userId, email, name, api_key } satisfies Profile };
    },
  };
}

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
