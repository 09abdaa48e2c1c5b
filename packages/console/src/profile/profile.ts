import { queryOptions } from '@tanstack/react-query';
import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import type { Profile } from '../api/types.ts';

/** Not cached once its page is left, because the response contains the key. */
export const profileQuery = queryOptions({
  queryKey: ['profile'],
  gcTime: 0,
  staleTime: 0,
  queryFn: async ({ signal }) => (await request('get', '/api/v3/profile', { signal })).data,
});

type Rotation = { kind: 'rotated'; apiKey: string } | { kind: 'replaced_elsewhere' };

/**
 * Rotates the key, authenticated by the key itself (docs/contract.md#api-keys), so that the call fails if it was rotated
 * elsewhere.
 */
export async function rotateKey({ user_id, api_key }: Profile): Promise<Rotation> {
  try {
    const { data } = await request('post', '/api/v2/users/{user_id}/apikey', {
      path: { user_id },
      headers: { authorization: `Token ${api_key}` },
    });
    return { kind: 'rotated', apiKey: data.api_key };
  } catch (error) {
    if (error instanceof ApiError && error.code === 401) return { kind: 'replaced_elsewhere' };
    throw error;
  }
}

const VISIBLE_CHARACTERS = 4;
const DOTS = '•'.repeat(16);

/** `rhu_••••••••••••••••3kQz`: enough to distinguish two keys. */
export function maskKey(key: string): string {
  const prefix = /^[a-z]+_/.exec(key)?.[0] ?? '';
  return `${prefix}${DOTS}${key.slice(-VISIBLE_CHARACTERS)}`;
}
