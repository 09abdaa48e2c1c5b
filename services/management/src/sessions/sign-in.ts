import type { PrismaClient } from '@runhook/database/prisma';
import { findPasswordHash } from '../identity/users.ts';
import type { ConsoleSessions } from './console-sessions.ts';
import type { PasswordCheck } from './password-check.ts';
import type { SignInAttempt, SignInLimits } from './sign-in-limits.ts';

/** `limited`: too many attempts, so the password was not checked. `busy`: too many checks are queued. */
export type SignInOutcome =
  | { kind: 'signed_in'; sessionId: string }
  | { kind: 'refused' }
  | { kind: 'busy' }
  | { kind: 'limited'; retryAfterSeconds: number };

/** @param beforeCommit called immediately before the commit; an error that it throws rolls the session back */
export type SignIn = (
  attempt: SignInAttempt & { password: string },
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
  return async ({ password, ...attempt }, beforeCommit) => {
    const { email, clientAddress } = attempt;
    const place = passwords.enter();
    if (!place) return { kind: 'busy' };
    try {
      const begun = await limits.begin(attempt);
      if (begun.kind === 'refused') return { kind: 'limited', retryAfterSeconds: begun.retryAfterSeconds };
      const user = await findPasswordHash(prisma, email);
      const passwordHash = user?.passwordHash ?? null;
      const isRight = await place.isRight(passwordHash, password);
      if (!isRight || !user || passwordHash === null) return { kind: 'refused' };
      const sessionId = await sessions.open({ id: user.id, passwordHash, clientAddress }, beforeCommit);
      if (sessionId === null) return { kind: 'refused' };
      await limits.succeeded(attempt);
      return { kind: 'signed_in', sessionId };
    } finally {
      place.leave();
    }
  };
}
