import type { Database } from '@runhook/database';
import { listAccounts } from '../../data/accounts.ts';
import type { ConsoleSessions } from '../../data/console-sessions.ts';
import { findUser } from '../../data/users.ts';
import type { Caller } from '../../domain/principal.ts';
import { hashSessionId } from '../../domain/session-id.ts';
import { type SessionView, sessionView } from '../../domain/session-view.ts';
import { parseSignIn } from '../../domain/sign-in-request.ts';
import type { SignIn } from '../../sign-in/sign-in.ts';
import type { CallerEndpoint, Endpoint, OpenEndpoint } from '../endpoint.ts';
import {
  AccessDeniedError,
  InvalidRequestError,
  InvalidTokenError,
  SignInRefusedError,
  TooManyRequestsError,
} from '../errors.ts';
import { requiredUser } from '../required-user.ts';
import { endedSessionCookie, sessionCookie, sessionIdOf } from '../session-cookie.ts';

const SESSION = '/api/v3/session';

interface SessionDependencies {
  pool: Database['pool'];
  sessions: ConsoleSessions;
  signIn: SignIn;
}

/** Signing in to the console, who is signed in, and signing out. */
export function sessionEndpoints(deps: SessionDependencies): Endpoint[] {
  return [signInEndpoint(deps), whoAmIEndpoint(deps), signOutEndpoint(deps)];
}

/** Takes JSON only, which no browser sends for another site's page without asking here first: no other proof is needed. */
function signInEndpoint({ pool, sessions, signIn }: SessionDependencies): OpenEndpoint {
  return {
    method: 'POST',
    path: SESSION,
    access: 'anyone',
    async handle({ body, header, clientAddress, secure }) {
      const { fields, problems } = parseSignIn(body);
      if (problems) throw new InvalidRequestError(problems);
      const outcome = await signIn({ ...fields, clientAddress });
      if (outcome.kind === 'limited') throw new TooManyRequestsError(outcome.retryAfterSeconds);
      if (outcome.kind === 'refused') throw new SignInRefusedError();
      await endReplacedSession(sessions, header('cookie'));
      const caller = await sessions.find(outcome.sessionId);
      if (!caller) throw new InvalidTokenError();
      const headers = { 'set-cookie': sessionCookie(outcome.sessionId, secure) };
      return { code: 201, data: await viewOf(pool, caller), headers };
    },
  };
}

function whoAmIEndpoint({ pool }: SessionDependencies): CallerEndpoint {
  return {
    method: 'GET',
    path: SESSION,
    access: 'caller',
    handle: async (caller) => ({ code: 200, data: await viewOf(pool, caller) }),
  };
}

function signOutEndpoint({ sessions }: SessionDependencies): CallerEndpoint {
  return {
    method: 'DELETE',
    path: SESSION,
    access: 'caller',
    async handle({ credential, secure }) {
      if (credential.kind !== 'session') throw new AccessDeniedError('A key is not signed in.');
      await sessions.close(credential.idHash);
      const headers = { 'set-cookie': endedSessionCookie(secure) };
      return { code: 200, data: {}, isSuccess: true, headers };
    },
  };
}

/** The browser forgets the session that it had before, and nobody else knows it. */
async function endReplacedSession(sessions: ConsoleSessions, cookie: string | undefined): Promise<void> {
  const idHash = hashSessionId(sessionIdOf(cookie) ?? '');
  if (idHash !== null) await sessions.close(idHash);
}

async function viewOf(pool: Database['pool'], { principal, credential }: Caller): Promise<SessionView> {
  const caller = requiredUser(principal);
  const accountIds = caller.memberships.map(({ account }) => account.id);
  const [user, accounts] = await Promise.all([
    findUser(pool, caller.userId, null),
    listAccounts(pool, accountIds, { limit: accountIds.length, offset: 0 }),
  ]);
  if (!user) throw new InvalidTokenError();
  return sessionView(caller, credential, user, accounts);
}
