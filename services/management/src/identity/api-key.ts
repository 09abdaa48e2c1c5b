import { integerIdFromText } from '@runhook/contract';
import { createCredential, hashCredential, type SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { type CallerEndpoint, requiredUser } from '../http/endpoint.ts';
import {
  AccessDeniedError,
  type ApiError,
  ConflictError,
  InvalidTokenError,
  NotFoundError,
} from '../http/errors.ts';
import type { Credential } from './principals.ts';
import { findUser, replaceApiKey } from './users.ts';

/**
 * docs/contract.md#api-keys: replaces the caller's own key, when it calls with that key or from its own console session. The
 * change is committed before the answer is written, and no process writes for a caller whom it remembers without asking
 * whether that still holds, so from then on the old key is refused everywhere. An answer that is lost on its way leaves the new key on the profile page.
 */
export function rotateApiKeyEndpoint(deps: { prisma: PrismaClient; secrets: SecretBox }): CallerEndpoint {
  return {
    method: 'POST',
    path: '/api/v2/users/:user_id/apikey',
    access: 'caller',
    async handle({ principal, credential, param, beforeCommit }) {
      if (!/^\d+$/.test(param('user_id'))) throw new NotFoundError();
      const { userId } = requiredUser(principal);
      if (integerIdFromText(param('user_id')) !== userId) {
        throw new AccessDeniedError('Users may rotate their own API key only.');
      }
      const apiKey = createCredential('user');
      const keys = {
        userId,
        currentHash: credential.kind === 'key' ? credential.hash : credential.apiKeyHash,
        newHash: hashCredential(apiKey),
        newCiphertext: deps.secrets.encrypt(apiKey),
      };
      const replaced = await replaceApiKey(deps.prisma, keys, beforeCommit);
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
export function profileEndpoint(deps: { prisma: PrismaClient; secrets: SecretBox }): CallerEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/profile',
    access: 'caller',
    async handle({ principal, credential }) {
      const { userId } = requiredUser(principal);
      const currentHash = credential.kind === 'key' ? credential.hash : null;
      const user = await findUser(deps.prisma, userId, currentHash);
      if (!user) throw new InvalidTokenError();
      const { email, name, apiKeyCiphertext } = user;
      const api_key = deps.secrets.decrypt(apiKeyCiphertext);
      return { code: 200, data: { user_id: userId, email, name, api_key } satisfies Profile };
    },
  };
}
