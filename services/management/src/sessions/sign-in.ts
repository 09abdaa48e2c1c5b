import type { PrismaClient } from '@runhook/database/prisma';
import { findPasswordHash } from '../identity/users.ts';
import type { BeforeSessionCommit, ConsoleSessions } from './console-sessions.ts';
import type { PasswordCheck, PasswordCheckRequest } from './password-check.ts';
import type { SignInFailure } from './sign-in-failures.ts';
import { type SignInAttempt, type SignInLimits, siteOf } from './sign-in-limits.ts';

/** `limited`: too many attempts, so the password was not checked. `busy`: too many checks are queued. */
export type SignInOutcome =
  | { kind: 'signed_in'; sessionId: string }
  | { kind: 'rejected' }
  | { kind: 'busy' }
  | { kind: 'limited'; retryAfterSeconds: number };

export type SignIn = (
  attempt: SignInAttempt & { password: string; browser?: string | null },
  beforeCommit: BeforeSessionCommit,
) => Promise<SignInOutcome>;

/** Result of a password check: the user with the checked hash, or the reason of the failure. */
type CheckedUser =
  | { kind: 'correct'; user: { id: number; passwordHash: string } }
  | { kind: 'wrong'; userId: number | null };

/** Opens a console session. An unknown e-mail address gives the same result as a wrong password. */
export function createSignIn(deps: {
  prisma: PrismaClient;
  sessions: Pick<ConsoleSessions, 'open'>;
  passwords: PasswordCheck;
  limits: SignInLimits;
  /** Called once for each failed sign-in; must not wait, since the time would reveal whether the user exists. */
  onFailure: (failure: SignInFailure) => void;
}): SignIn {
  const { prisma, sessions, passwords, limits, onFailure } = deps;

  /** Returns null if too many checks are queued. */
  async function checkPassword(
    request: PasswordCheckRequest,
    { email, password }: { email: string; password: string },
  ): Promise<CheckedUser | null> {
    const slot = await passwords.acquireSlot(request);
    if (!slot) return null;
    try {
      const user = await findPasswordHash(prisma, email);
      const passwordHash = user?.passwordHash ?? null;
      const isCorrect = await slot.isCorrect(passwordHash, password);
      if (!isCorrect || !user || passwordHash === null) return { kind: 'wrong', userId: user?.id ?? null };
      return { kind: 'correct', user: { id: user.id, passwordHash } };
    } finally {
      slot.release();
    }
  }

  /** An attempt that ends with an error does not count, because its password was not found wrong. */
  async function orRefund<Result>(attempt: SignInAttempt, result: Promise<Result>): Promise<Result> {
    try {
      return await result;
    } catch (error) {
      await limits.refundAttempt(attempt);
      throw error;
    }
  }

  return async ({ password, browser = null, ...attempt }, beforeCommit) => {
    const { email, clientAddress } = attempt;
    const fail = (reason: SignInFailure['reason'], userId: number | null = null) =>
      onFailure({ reason, email, clientAddress, userId });
    const limitResult = await limits.countAttempt(attempt);
    if (limitResult.kind === 'rejected') {
      fail('limited');
      return { kind: 'limited', retryAfterSeconds: limitResult.retryAfterSeconds };
    }
    const checked = await orRefund(
      attempt,
      checkPassword(passwordCheckRequest(attempt, limitResult.failures), { email, password }),
    );
    if (!checked) {
      fail('busy');
      await limits.refundAttempt(attempt);
      return { kind: 'busy' };
    }
    if (checked.kind === 'wrong') {
      fail(checked.userId === null ? 'unknown_email' : 'wrong_password', checked.userId);
      return { kind: 'rejected' };
    }
    const session = { ...checked.user, clientAddress, browser };
    const sessionId = await orRefund(attempt, sessions.open(session, beforeCommit));
    if (sessionId === null) {
      fail('wrong_password', checked.user.id);
      return { kind: 'rejected' };
    }
    await limits.recordSuccess(attempt);
    return { kind: 'signed_in', sessionId };
  };
}

/**
 * Groups recognized devices by user, because a user can obtain any number of devices, but none of another user; groups
 * other clients by site, because an attacker has many addresses of few sites.
 */
export function passwordCheckRequest(
  { email, clientAddress, device }: SignInAttempt,
  failures: number,
): PasswordCheckRequest {
  return { isRecognized: device !== null, group: device ? email : siteOf(clientAddress), failures };
}
