import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import type { Profile } from '../api/types.ts';

export type Rotation = { kind: 'rotated'; apiKey: string } | { kind: 'replaced_elsewhere' };

/** Replaces the key with the key itself (spec, section 4.7). One that was rotated elsewhere meanwhile is refused. */
export async function rotateKey({ user_id, api_key }: Profile): Promise<Rotation> {
  try {
    const { data } = await request('post', '/api/v2/users/{user_id}/apikey/', {
      path: { user_id },
      headers: { authorization: `Token ${api_key}` },
    });
    return { kind: 'rotated', apiKey: data.api_key };
  } catch (error) {
    if (error instanceof ApiError && error.code === 401) return { kind: 'replaced_elsewhere' };
    throw error;
  }
}
