import type { Database, SecretBox } from '@runhook/database';
import { findUser } from '../../data/users.ts';
import type { CallerEndpoint } from '../endpoint.ts';
import { InvalidTokenError } from '../errors.ts';
import { requiredUser } from '../required-user.ts';

/** What the profile page shows of its user. */
export interface Profile {
  user_id: number;
  email: string;
  name: string;
  api_key: string;
}

/**
 * The user's own record with the API key, for the profile page (spec, section 4.7). A caller by key is asked for again
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
