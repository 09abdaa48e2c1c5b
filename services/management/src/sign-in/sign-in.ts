import type { Database } from '@runhook/database';
import type { ConsoleSessions } from '../data/console-sessions.ts';
import { findPasswordHash } from '../data/users.ts';
import type { PasswordCheck } from './check-password.ts';
import type { SignInLimits } from './sign-in-limits.ts';

/** `limited`: too many attempts; whether the password was right is not even asked. */
export type SignInOutcome =
  | { kind: 'signed_in'; sessionId: string }
  | { kind: 'refused' }
  | { kind: 'limited'; retryAfterSeconds: number };

export type SignIn = (attempt: {
  /** In lower case, as addresses are stored. */
  email: string;
  password: string;
  clientAddress: string;
}) => Promise<SignInOutcome>;

/** Opens a console session for an e-mail address and its password. An unknown address is told like a wrong password. */
export function createSignIn(deps: {
  pool: Database['pool'];
  sessions: Pick<ConsoleSessions, 'open'>;
  passwords: PasswordCheck;
  limits: SignInLimits;
}): SignIn {
  const { pool, sessions, passwords, limits } = deps;
  return async ({ email, password, clientAddress }) => {
    if (passwords.busy()) return { kind: 'limited', retryAfterSeconds: 1 };
    const begun = await limits.begin({ email, clientAddress });
    if (begun.kind === 'refused') return { kind: 'limited', retryAfterSeconds: begun.retryAfterSeconds };
    const user = await findPasswordHash(pool, email);
    const passwordHash = user?.passwordHash ?? null;
    const isRight = await passwords.isRight(passwordHash, password);
    if (!isRight || !user || passwordHash === null) return { kind: 'refused' };
    const sessionId = await sessions.open({ id: user.id, passwordHash });
    if (sessionId === null) return { kind: 'refused' };
    await limits.succeeded({ email, clientAddress });
    return { kind: 'signed_in', sessionId };
  };
}
