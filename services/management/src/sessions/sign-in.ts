import type { PrismaClient } from '@runhook/database/prisma';
import { findPasswordHash } from '../identity/users.ts';
import type { ConsoleSessions } from './console-sessions.ts';
import type { PasswordCheck } from './password-check.ts';
import type { SignInAttempt, SignInLimits } from './sign-in-limits.ts';

/** `limited`: too many attempts, so the password was not checked. `busy`: too many checks are queued. */
export type SignInOutcome =
  | { kind: 'signed_in'; sessionId: string }
  | { kind: 'rejected' }
  | { kind: 'busy' }
  | { kind: 'limited'; retryAfterSeconds: number };

/** @param beforeCommit called immediately before the commit; an error that it throws rolls the session back */
export type SignIn = (
  attempt: SignInAttempt & { password: string; browser?: string | null },
  beforeCommit: () => void,
) => Promise<SignInOutcome>;

/** Opens a console session. An unknown e-mail address gives the same result as a wrong password. */
export function createSignIn(deps: {
  prisma: PrismaClient;
  sessions: Pick<ConsoleSessions, 'open'>;
  passwords: PasswordCheck;
  limits: SignInLimits;
}): SignIn {
  const { prisma, sessions, passwords, limits } = deps;
  return async ({ password, browser = null, ...attempt }, beforeCommit) => {
    const { email, clientAddress } = attempt;
    const slot = passwords.acquireSlot();
    if (!slot) return { kind: 'busy' };
    try {
      const limitResult = await limits.countAttempt(attempt);
      if (limitResult.kind === 'rejected')
        return { kind: 'limited', retryAfterSeconds: limitResult.retryAfterSeconds };
      const user = await findPasswordHash(prisma, email);
      const passwordHash = user?.passwordHash ?? null;
      const isCorrect = await slot.isCorrect(passwordHash, password);
      if (!isCorrect || !user || passwordHash === null) return { kind: 'rejected' };
      const sessionId = await sessions.open(
        { id: user.id, passwordHash, clientAddress, browser },
        beforeCommit,
      );
      if (sessionId === null) return { kind: 'rejected' };
      await limits.recordSuccess(attempt);
      return { kind: 'signed_in', sessionId };
    } finally {
      slot.release();
    }
  };
}
