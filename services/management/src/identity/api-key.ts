import { integerIdFromText } from '@runhook/contract';
import { createCredential, hashCredential, type SecretBox } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { type CallerEndpoint, requireUser } from '../http/endpoint.ts';
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
 * Replaces the caller's own key (docs/contract.md#api-keys) if the caller uses that key or its own console session. The
 * change is committed before the response is written, and writes for a cached caller check that it is current, so from
 * then on every process rejects the old key. If the response is lost, the profile page has the new key.
 */
export function rotateApiKeyEndpoint(deps: { prisma: PrismaClient; secrets: SecretBox }): CallerEndpoint {
  return {
    method: 'POST',
    path: '/api/v2/users/:user_id/apikey',
    access: 'caller',
    async handle({ principal, credential, param, beforeCommit }) {
      if (!/^\d+$/.test(param('user_id'))) throw new NotFoundError();
      const { userId } = requireUser(principal);
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
      const isReplaced = await replaceApiKey(deps.prisma, keys, beforeCommit);
      if (!isReplaced) throw rotationConflict(credential);
      return { code: 200, data: { user_id: userId, api_key: apiKey } };
    },
  };
}

/** Another rotation was committed first. The caller's key is now invalid (401); a console session is still valid. */
function rotationConflict(credential: Credential): ApiError {
  return credential.kind === 'key'
    ? new InvalidTokenError()
    : new ConflictError('The API key was rotated by another request.');
}

/** Contents of the profile page. */
export interface Profile {
  user_id: number;
  email: string;
  name: string;
  api_key: string;
}

/**
 * Returns the user's own record with the API key for the profile page (docs/contract.md#api-keys). The read checks the
 * caller's key again, because a caller with a key that is being rotated must not get the new one.
 */
export function profileEndpoint(deps: { prisma: PrismaClient; secrets: SecretBox }): CallerEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/profile',
    access: 'caller',
    hasSecret: true,
    async handle({ principal, credential }) {
      const { userId } = requireUser(principal);
      const currentHash = credential.kind === 'key' ? credential.hash : null;
      const user = await findUser(deps.prisma, userId, currentHash);
      if (!user) throw new InvalidTokenError();
      const { email, name, apiKeyCiphertext } = user;
      const api_key = deps.secrets.decrypt(apiKeyCiphertext);
      return { code: 200, data: { user_id: userId, email, name, api_key } satisfies Profile };
    },
  };
}
