import { integerIdFromText } from '@runhook/contract';
import { createCredential, type Database, hashCredential, type SecretBox } from '@runhook/database';
import { replaceApiKey } from '../../data/users.ts';
import type { Credential } from '../../domain/principal.ts';
import type { CallerEndpoint } from '../endpoint.ts';
import {
  AccessDeniedError,
  type ApiError,
  ConflictError,
  InvalidTokenError,
  NotFoundError,
} from '../errors.ts';
import { requiredUser } from '../required-user.ts';

/**
 * Spec, section 4.7: replaces the caller's own key, when it calls with that key or from its own console session. The
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
