import { useQuery } from '@tanstack/react-query';
import type { Session } from '../api/types.ts';
import { sessionQuery } from './session-query.ts';

/** Who is signed in, for pages that show without anybody; null when nobody is or it is not known yet. */
export function useKnownSession(): Session | null {
  return useQuery(sessionQuery).data ?? null;
}
