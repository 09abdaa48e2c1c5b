import type { Logger } from '@runhook/runtime';
import type { Counter } from 'prom-client';
import type { PublicEndpoint } from '../http/endpoint.ts';
import type { EndpointResponse } from '../http/envelope.ts';
import { InvalidRequestError, NotFoundError, UnavailableError } from '../http/errors.ts';
import { QueryReader } from '../http/query-parameters.ts';
import { SESSION_COOKIE, sessionCookie } from '../sessions/console-sessions.ts';
import { cookieProtection, replacedCookies } from '../sessions/cookie-protection.ts';
import { PROVIDER_TIMEOUT_MS } from './bounded-fetch.ts';
import { type ExchangeSlots, openingPage } from './callback.ts';
import type { LogoutToken } from './logout-token.ts';
import { CALLBACK_PATH, type Provider } from './provider.ts';
import type { OidcSettings } from './settings.ts';
import type { OidcSignIn, Rejection } from './sign-in.ts';
import { type SignInCookie, type SignInFlow, safeNext } from './sign-in-cookie.ts';

const METHODS_PATH = '/api/v3/session/methods';
const START_PATH = '/api/v3/session/oidc';
const LOGOUT_PATH = '/api/v3/session/oidc/logout';
/** A logout token has some 1,000 characters. */
const LOGOUT_BYTES_MAX = 16 * 1_024;

/** Ways to sign in, for the sign-in page. */
export interface SignInMethods {
  password: boolean;
  oidc: boolean;
}

/**
 * Why a sign-in failed, in the address of the sign-in page. `expired`: the browser has no sign-in with this state.
 * `rejected`: the provider rejected the user. `busy`: too many sign-ins.
 */
export type SignInProblem = Rejection | 'expired' | 'rejected' | 'unavailable' | 'busy';

export interface OidcRouteDependencies {
  settings: OidcSettings;
  provider: Provider;
  cookie: SignInCookie;
  signIn: OidcSignIn;
  slots: ExchangeSlots;
  recordLogout: (token: LogoutToken) => Promise<number>;
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Counts failed sign-ins. */
  failures: Pick<Counter<'reason'>, 'inc'>;
  /** Creates the random values of a sign-in. */
  createFlow: () => Omit<SignInFlow, 'next'>;
}

/** @param deps null if there is no provider: its endpoints are a 404 */
export function oidcEndpoints(deps: OidcRouteDependencies | null, methods: SignInMethods): PublicEndpoint[] {
  return [
    {
      method: 'GET',
      path: METHODS_PATH,
      access: 'anyone',
      handle: async () => ({ code: 200, data: methods }),
    },
    {
      method: 'GET',
      path: START_PATH,
      access: 'anyone',
      extraTimeMs: PROVIDER_TIMEOUT_MS,
      handle: requireProvider(deps, start),
    },
    {
      method: 'GET',
      path: CALLBACK_PATH,
      access: 'anyone',
      extraTimeMs: 3 * PROVIDER_TIMEOUT_MS,
      handle: requireProvider(deps, complete),
    },
    {
      method: 'POST',
      path: LOGOUT_PATH,
      access: 'anyone',
      bodyType: 'form',
      extraTimeMs: PROVIDER_TIMEOUT_MS,
      bodyBytesMax: LOGOUT_BYTES_MAX,
      handle: requireProvider(deps, logOut),
    },
  ];
}

type PublicRequest = Parameters<PublicEndpoint['handle']>[0];
type Handler = (deps: OidcRouteDependencies, request: PublicRequest) => Promise<EndpointResponse>;

function requireProvider(deps: OidcRouteDependencies | null, handler: Handler): PublicEndpoint['handle'] {
  return async (request) => {
    if (deps === null) throw new NotFoundError('Single sign-on is not configured.');
    return await handler(deps, request);
  };
}

/** Sends the browser to the provider. */
async function start(
  deps: OidcRouteDependencies,
  { query, clientAddress }: PublicRequest,
): Promise<EndpointResponse> {
  const reader = new QueryReader(query);
  const next = safeNext(reader.optional('next', (value) => ({ value })) ?? undefined);
  reader.check();
  const failed = (problem: SignInProblem) => toSignInPage(deps, { problem, next, clientAddress });
  if (!(await deps.slots.count(clientAddress))) return failed('busy');
  const flow = deps.createFlow();
  try {
    const url = await deps.provider.authorizationUrl(flow);
    const headers = { location: url.href, 'set-cookie': deps.cookie.issue({ ...flow, next }) };
    return { code: 302, data: null, headers, isBodiless: true };
  } catch (err) {
    deps.logger.warn({ err }, 'identity provider unavailable for a sign-in');
    return failed('unavailable');
  }
}

/** Signs in the user with whom the provider sends the browser back. */
async function complete(deps: OidcRouteDependencies, request: PublicRequest): Promise<EndpointResponse> {
  const { query, header, clientAddress, secure, beforeCommit } = request;
  const flow = deps.cookie.read(header('cookie'));
  const next = flow?.next ?? '/';
  const failed = (problem: SignInProblem) => toSignInPage(deps, { problem, next, clientAddress });
  // Without the state of this browser, another site could sign the user in as someone else.
  if (flow === null || query.state !== flow.state) return failed('expired');
  if (!(await deps.slots.count(clientAddress))) return failed('busy');
  const release = deps.slots.acquire();
  if (release === null) return failed('busy');
  try {
    const result = await deps.provider.exchange(toSearch(query), flow);
    if (result.kind === 'unavailable') {
      deps.logger.warn({ err: result.error }, 'identity provider unavailable for a sign-in');
      return failed('unavailable');
    }
    if (result.kind === 'rejected') {
      deps.logger.warn({ reason: result.reason }, 'sign-in rejected by the identity provider');
      return failed('rejected');
    }
    const client = { clientAddress, userAgent: header('user-agent'), cookie: header('cookie') };
    const outcome = await deps.signIn(result.user, client, beforeCommit);
    if (outcome.kind === 'rejected') {
      const { reason, details } = outcome;
      const { issuer, subject } = result.user;
      deps.logger.warn(
        { reason, details, issuer, subject },
        'sign-in of a user of the identity provider rejected',
      );
      return failed(reason);
    }
    await deps.slots.refund(clientAddress);
    const protection = cookieProtection(deps.settings.publicUrl, secure);
    const cookies = [
      sessionCookie(outcome.sessionId, protection),
      ...replacedCookies(SESSION_COOKIE, protection),
      deps.cookie.remove(),
    ];
    return {
      code: 200,
      data: null,
      headers: { 'set-cookie': cookies },
      page: openingPage(deps.settings.publicUrl + flow.next),
    };
  } finally {
    release();
  }
}

/** Back-channel logout. The response is the same whether or not the token concerns a user of this installation. */
async function logOut(
  deps: OidcRouteDependencies,
  { body, beforeCommit }: PublicRequest,
): Promise<EndpointResponse> {
  const token = (body as { logout_token?: unknown } | undefined)?.logout_token;
  const verified = typeof token === 'string' ? await verifyLogoutToken(deps, token) : null;
  if (verified === null)
    throw new InvalidRequestError([{ field: 'logout_token', message: 'logout_token is not valid' }]);
  beforeCommit();
  const userCount = await deps.recordLogout(verified);
  deps.logger.info({ userCount, hasSid: verified.sid !== null }, 'logout by the identity provider');
  return { code: 200, data: {} };
}

async function verifyLogoutToken(deps: OidcRouteDependencies, token: string): Promise<LogoutToken | null> {
  try {
    return await deps.provider.verifyLogoutToken(token);
  } catch (err) {
    deps.logger.warn({ err }, 'keys of the identity provider unavailable for a logout token');
    throw new UnavailableError();
  }
}

/** Reports a failed sign-in, and sends the browser to the sign-in page. */
function toSignInPage(
  { settings, cookie, logger, failures }: OidcRouteDependencies,
  { problem, next, clientAddress }: { problem: SignInProblem; next: string; clientAddress: string },
): EndpointResponse {
  logger.info({ reason: problem, clientAddress }, 'single sign-on failed');
  failures.inc({ reason: 'single_sign_on' });
  const search = new URLSearchParams({ problem, ...(next !== '/' && { next }) });
  const headers = { location: `${settings.publicUrl}/sign-in?${search}`, 'set-cookie': cookie.remove() };
  return { code: 302, data: null, headers, isBodiless: true };
}

/** A repeated parameter is not of the protocol, and is omitted. */
function toSearch(query: PublicRequest['query']): string {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as [string, string]] : [],
  );
  return `?${new URLSearchParams(entries)}`;
}
