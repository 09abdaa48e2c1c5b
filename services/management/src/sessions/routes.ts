import {
  boundedText,
  configuredText,
  type Problem,
  secondsTimestamp,
  toProblems,
  VALIDATION_OPTIONS,
  webhooksUnavailableReason,
} from '@runhook/contract';
import type { License, PermissionSet } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { BODY_BYTES_MAX } from '../http/body.ts';
import { type CallerEndpoint, type Endpoint, type PublicEndpoint, requireUser } from '../http/endpoint.ts';
import {
  AccessDeniedError,
  InvalidRequestError,
  InvalidTokenError,
  SignInRejectedError,
  TooManyRequestsError,
  UnavailableError,
} from '../http/errors.ts';
import { type AccountView, listAccounts } from '../identity/accounts.ts';
import {
  type Caller,
  type Credential,
  type Membership,
  missingPermission,
  type UserPrincipal,
} from '../identity/principals.ts';
import { findUser } from '../identity/users.ts';
import { describeBrowser } from './browser.ts';
import {
  type ConsoleSessions,
  endReplacedSessions,
  SESSION_COOKIE,
  sessionCookie,
} from './console-sessions.ts';
import { cookieProtection, removedCookies, replacedCookies } from './cookie-protection.ts';
import { DEVICE_COOKIE, type DeviceCookies } from './device-cookies.ts';
import type { SignIn } from './sign-in.ts';

export const SESSION = '/api/v3/session';

interface SessionDependencies {
  prisma: PrismaClient;
  sessions: ConsoleSessions;
  signIn: SignIn;
  deviceCookies: DeviceCookies;
  /** URL of the console; undefined if it is not configured. */
  publicUrl: string | undefined;
}

/** Signing in to the console, reading the current session, and signing out. */
export function sessionEndpoints(deps: SessionDependencies): Endpoint[] {
  return [signInEndpoint(deps), whoAmIEndpoint(deps), signOutEndpoint(deps)];
}

/** Accepts JSON only: other sites' pages cannot send it without a preflight request, so the origin is not checked. */
function signInEndpoint({ signIn, deviceCookies, publicUrl }: SessionDependencies): PublicEndpoint {
  return {
    method: 'POST',
    path: SESSION,
    access: 'anyone',
    bodyBytesMax: BODY_BYTES_MAX.signIn,
    async handle({ body, header, clientAddress, secure, beforeCommit }) {
      const { fields, problems } = parseSignIn(body);
      if (problems) throw new InvalidRequestError(problems);
      const cookie = header('cookie');
      const device = deviceCookies.find(cookie, fields.email);
      const browser = describeBrowser(header('user-agent'));
      let data: SessionView | null = null;
      const attempt = { ...fields, clientAddress, device, browser };
      const outcome = await signIn(attempt, async (transaction, caller) => {
        await endReplacedSessions(transaction, cookie);
        data = await readSessionView(transaction, caller);
        beforeCommit();
      });
      if (outcome.kind === 'busy') throw new UnavailableError();
      if (outcome.kind === 'limited') throw new TooManyRequestsError(outcome.retryAfterSeconds);
      if (outcome.kind === 'rejected') throw new SignInRejectedError();
      const protection = cookieProtection(publicUrl, secure);
      const cookies = [
        sessionCookie(outcome.sessionId, protection),
        deviceCookies.issue(cookie, fields.email, protection),
        ...replacedCookies(SESSION_COOKIE, protection),
        ...replacedCookies(DEVICE_COOKIE, protection),
      ];
      return { code: 201, data, headers: { 'set-cookie': cookies } };
    },
  };
}

function whoAmIEndpoint({ prisma }: SessionDependencies): CallerEndpoint {
  return {
    method: 'GET',
    path: SESSION,
    access: 'caller',
    handle: async (caller) => ({ code: 200, data: await readSessionView(prisma, caller) }),
  };
}

function signOutEndpoint({ sessions, publicUrl }: SessionDependencies): CallerEndpoint {
  return {
    method: 'DELETE',
    path: SESSION,
    access: 'caller',
    async handle({ principal, credential, clientAddress, secure, beforeCommit }) {
      if (credential.kind !== 'session') throw new AccessDeniedError('A key is not signed in.');
      const { userId: id } = requireUser(principal);
      await sessions.close(credential.idHash, beforeCommit, { id, clientAddress });
      const headers = { 'set-cookie': removedCookies(SESSION_COOKIE, cookieProtection(publicUrl, secure)) };
      return { code: 200, data: {}, isSuccess: true, headers };
    },
  };
}

async function readSessionView(
  prisma: Prisma.TransactionClient,
  { principal, credential }: Caller,
): Promise<SessionView> {
  const caller = requireUser(principal);
  const accountIds = caller.memberships.map(({ account }) => account.id);
  const user = await findUser(prisma, caller.userId, null);
  if (!user) throw new InvalidTokenError();
  const accounts = await listAccounts(prisma, accountIds, { limit: accountIds.length, offset: 0 });
  return sessionView(caller, credential, user, accounts);
}

export const SIGN_IN_LIMITS = { emailCharactersMax: 320, passwordCharactersMax: 1_024 } as const;

/** Body of `POST /api/v3/session`. */
export interface SignInFields {
  /** E-mail address in lower case, as stored. */
  email: string;
  password: string;
}

const schema = Joi.object<SignInFields>({
  email: configuredText(SIGN_IN_LIMITS.emailCharactersMax).required(),
  password: boundedText(SIGN_IN_LIMITS.passwordCharactersMax).required(),
});

export type SignInParsing =
  | { fields: SignInFields; problems?: never }
  | { fields?: never; problems: Problem[] };

function parseSignIn(body: unknown): SignInParsing {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) return { problems: toProblems(error, 'body') };
  return { fields: { ...value, email: value.email.trim().toLowerCase() } };
}

/** The caller and its permissions by account, by which the console shows and hides controls. */
export interface SessionView {
  user_id: number;
  email: string;
  name: string;
  accounts: SessionAccountView[];
  /** Latest end of the session, ISO 8601 UTC in seconds with `Z`; null for a caller with an API key. */
  expires_at: string | null;
}

export interface SessionAccountView extends AccountView {
  license: License;
  permission_sets: PermissionSet[];
  /** The reason why the account has no webhooks; null if it has them. */
  webhooks_unavailable: 'plan' | 'deployment' | null;
  may_write_webhooks: boolean;
}

function sessionView(
  { memberships }: UserPrincipal,
  credential: Credential,
  user: { id: number; email: string; name: string },
  accounts: readonly AccountView[],
): SessionView {
  return {
    user_id: user.id,
    email: user.email,
    name: user.name,
    accounts: accounts.flatMap((account) => {
      const membership = memberships.find((candidate) => candidate.account.id === account.id);
      return membership ? [accountView(account, membership)] : [];
    }),
    expires_at: credential.kind === 'session' ? secondsTimestamp(credential.expiresAt) : null,
  };
}

function accountView(account: AccountView, { license, permissionSets }: Membership): SessionAccountView {
  const unavailable = webhooksUnavailableReason(account);
  const missing = missingPermission('write_webhooks', account.plan, {
    kind: 'user',
    license,
    permissionSets,
  });
  return {
    ...account,
    license,
    permission_sets: permissionSets,
    webhooks_unavailable: unavailable,
    may_write_webhooks: unavailable === null && missing === null,
  };
}
