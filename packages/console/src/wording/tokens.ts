import type { ServiceToken } from '../api/types.ts';
import type { Tone } from './http-status.ts';
import { parseTime } from './time.ts';

/** Returns the state of a token: "Active", "Expired" or "Revoked". */
export function tokenState(
  { revoked_at, expires_at }: Pick<ServiceToken, 'revoked_at' | 'expires_at'>,
  nowMs: number,
): { tone: Tone; text: string } {
  if (revoked_at !== null) return { tone: 'neutral', text: 'Revoked' };
  const expiryMs = expires_at === null ? Number.POSITIVE_INFINITY : (parseTime(expires_at)?.getTime() ?? 0);
  return expiryMs <= nowMs ? { tone: 'bad', text: 'Expired' } : { tone: 'good', text: 'Active' };
}
