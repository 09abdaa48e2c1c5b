import { queryOptions } from '@tanstack/react-query';
import { request } from '../api/request.ts';

/** Maximum number of sessions on the page: the largest page of the API. Further ones are used less recently. */
const SESSIONS_MAX = 100;

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: async ({ signal }) =>
    (await request('get', '/api/v3/profile/sessions', { query: { limit: SESSIONS_MAX }, signal })).data,
});

export async function endSession(id: string): Promise<void> {
  await request('delete', '/api/v3/profile/sessions/{session_id}', { path: { session_id: id } });
}

export async function endAllSessions(): Promise<void> {
  await request('delete', '/api/v3/profile/sessions', {});
}
