import type { QueryClient } from '@tanstack/react-query';
import type { Session } from '../api/types.ts';
import { SESSION_KEY } from './session-query.ts';

/**
 * From now on somebody, or with null nobody, is signed in: whatever was loaded for the one before is forgotten. The
 * query of the session itself stays, as pages watch it.
 */
export async function beginSession(client: QueryClient, session: Session | null): Promise<void> {
  await client.cancelQueries();
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
  client.getMutationCache().clear();
  client.setQueryData(SESSION_KEY, session);
}
