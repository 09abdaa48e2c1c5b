import { LICENSES, PERMISSION_SETS } from '@runhook/database';
import {
  type Header,
  nullable,
  type Paths,
  requestObject,
  requiredText,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from '../http/openapi/field-schemas.ts';
import { requestBody } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import { ACCOUNT_EXAMPLE, ADA, accountProperties, NO_USER, userProperties } from '../identity/openapi.ts';
import { type SessionAccountView, type SessionView, SIGN_IN_LIMITS, type SignInFields } from './routes.ts';

const SIGN_IN_EXAMPLE = { email: ADA.email, password: 'correct horse battery staple' };

const SESSION_EXAMPLE: SessionView = {
  ...ADA,
  accounts: [
    {
      ...ACCOUNT_EXAMPLE,
      license: 'developer',
      permission_sets: ['account_admin'],
      webhooks_unavailable: null,
      may_write_webhooks: true,
    },
  ],
  expires_at: '2026-11-21T10:00:00Z',
};

const tags = ['Accounts and users'];

const SET_COOKIE: Record<string, Header> = {
  'Set-Cookie': {
    description:
      'The cookie of the session: `HttpOnly`, `SameSite=Strict`, and `Secure` over https; with an https `PUBLIC_URL` its name begins with `__Host-`.',
    required: true,
    schema: { type: 'string', pattern: '^(__Host-)?runhook_session=' },
  },
};

const DESCRIPTION =
  'Failed attempts are limited: per e-mail address and network, per e-mail address from everywhere (a much higher limit), and per client address. A browser that has signed in before is recognized by a second cookie, `runhook_device`, which is set with that of the session, and has a separate limit that other clients cannot exhaust. Passwords are checked in turns of the networks, in separate turns for recognized browsers. A 503 is also the response while too many wait.';

/** Paths of the OpenAPI document; see docs/contract.md#identity. */
export const sessionPaths: Paths = {
  '/api/v3/session': {
    get: {
      operationId: 'getSession',
      tags,
      summary: 'Get the current session and its permissions',
      description: 'For users only, with a session or an API key.',
      responses: operationResponses('caller', {
        200: success(200, 'The session.', schemaRef('Session'), SESSION_EXAMPLE),
        403: NO_USER,
      }),
    },
    post: {
      operationId: 'signIn',
      tags,
      summary: 'Sign in to the console',
      description: DESCRIPTION,
      security: [],
      requestBody: requestBody('SignInFields', 'The credentials.', SIGN_IN_EXAMPLE),
      responses: operationResponses(
        'anyone',
        {
          201: {
            ...success(201, 'The session has started.', schemaRef('Session'), SESSION_EXAMPLE),
            headers: SET_COOKIE,
          },
          401: failureWithReason(
            401,
            'There is no such user, or the password is wrong; the response does not say which.',
            'The e-mail address or the password is wrong.',
          ),
          403: failureWithReason(
            403,
            'Passwords are switched off.',
            'Access denied: Passwords are switched off; sign in at the identity provider.',
          ),
        },
        BODY_FAILURES,
      ),
    },
    delete: {
      operationId: 'signOut',
      tags,
      summary: 'Sign out',
      description: 'Ends the session on the server.',
      security: [{ session: [] }],
      responses: operationResponses('caller', {
        200: {
          ...success(200, 'The session has ended.', schemaRef('SignedOut'), {}, 'deleted'),
          headers: SET_COOKIE,
        },
        403: failureWithReason(
          403,
          'The caller has an API key and no session, or the request does not come from the console.',
          'Access denied: A key is not signed in.',
        ),
      }),
    },
  },
};

export const sessionSchemas: Record<string, Schema> = {
  Session: responseObject<SessionView>('The caller, with its permissions.', {
    ...userProperties,
    accounts: {
      type: 'array',
      items: schemaRef('SessionAccount'),
      description: 'Every account of which the user is a member, oldest first.',
    },
    expires_at: nullable(secondsTime('Latest end of the session; null for a caller with an API key.')),
  }),

  SessionAccount: responseObject<SessionAccountView>('An account, with the membership of the user.', {
    ...accountProperties,
    license: { type: 'string', enum: LICENSES, description: 'The user’s licence in the account.' },
    permission_sets: {
      type: 'array',
      items: { type: 'string', enum: PERMISSION_SETS },
      description: 'The user’s permission sets in the account.',
    },
    webhooks_unavailable: {
      anyOf: [{ type: 'string', enum: ['plan', 'deployment'] }, { type: 'null' }],
      description: 'Why the account has no webhooks; null if it has them.',
    },
    may_write_webhooks: {
      type: 'boolean',
      description: 'Whether the user may create, change, delete and test webhooks of the account.',
    },
  }),

  SignInFields: requestObject<SignInFields>(
    'Credentials for a sign-in.',
    {
      email: requiredText(SIGN_IN_LIMITS.emailCharactersMax, 'E-mail address, case-insensitive.'),
      password: text('Password.', { minLength: 1, maxLength: SIGN_IN_LIMITS.passwordCharactersMax }),
    },
    ['email', 'password'],
  ),

  SignedOut: responseObject<Record<never, never>>('No data.', {}),
};
