import type { Header, Paths, Response, Schema } from '../http/openapi/field-schemas.ts';
import { responseObject, schemaRef } from '../http/openapi/field-schemas.ts';
import { queryParameter } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import type { SignInMethods } from './routes.ts';

const tags = ['Accounts and users'];

const NOT_CONFIGURED = failureWithReason(
  404,
  'The installation has no identity provider.',
  'Single sign-on is not configured.',
);

const SET_COOKIE: Header = {
  description: 'The cookies of the sign-in, and of the session.',
  required: true,
  schema: { type: 'string' },
};

const redirect = (description: string): Response => ({
  description,
  headers: {
    Location: { description: 'The next address.', required: true, schema: { type: 'string' } },
    'Set-Cookie': SET_COOKIE,
  },
});

/** Paths of the OpenAPI document; see docs/oidc.md. */
export const oidcPaths: Paths = {
  '/api/v3/session/methods': {
    get: {
      operationId: 'getSignInMethods',
      tags,
      summary: 'Get the ways to sign in to the console',
      description: 'For the sign-in page.',
      security: [],
      responses: operationResponses('anyone', {
        200: success(200, 'The ways to sign in.', schemaRef('SignInMethods'), {
          password: true,
          oidc: false,
        } satisfies SignInMethods),
      }),
    },
  },
  '/api/v3/session/oidc': {
    get: {
      operationId: 'startOidcSignIn',
      tags,
      summary: 'Send the browser to the identity provider',
      description:
        'For browsers. If the provider is unavailable, it opens the sign-in page with a `problem`.',
      security: [],
      parameters: [
        queryParameter('next', 'Path of the console to open after the sign-in.', { type: 'string' }),
      ],
      responses: {
        ...operationResponses('anyone', { 404: NOT_CONFIGURED }, [400]),
        302: redirect('To the provider, or to the sign-in page.'),
        // Linters require a response other than an error.
        default: redirect('As 302.'),
      },
    },
  },
  '/api/v3/session/oidc/callback': {
    get: {
      operationId: 'completeOidcSignIn',
      tags,
      summary: 'Sign in with the response of the identity provider',
      description: 'For browsers, with the cookie that the start of the sign-in has set.',
      security: [],
      responses: operationResponses('anyone', {
        200: {
          description: 'The session has started; the page opens the console.',
          headers: { 'Set-Cookie': SET_COOKIE },
          content: { 'text/html': { schema: { type: 'string' } } },
        },
        302: redirect('To the sign-in page, with a `problem`.'),
        404: NOT_CONFIGURED,
      }),
    },
  },
  '/api/v3/session/oidc/logout': {
    post: {
      operationId: 'oidcBackChannelLogout',
      tags,
      summary: 'End sessions by a logout token of the identity provider',
      description:
        'OpenID Connect Back-Channel Logout 1.0. Ends the sessions that the token names; the access of the user is then checked at the provider before its next use.',
      security: [],
      requestBody: {
        description: 'The token.',
        required: true,
        content: { 'application/x-www-form-urlencoded': { schema: schemaRef('LogoutRequest') } },
      },
      responses: operationResponses(
        'anyone',
        {
          200: success(200, 'The sessions have ended.', schemaRef('SignedOut'), {}),
          404: NOT_CONFIGURED,
        },
        BODY_FAILURES,
      ),
    },
  },
};

export const oidcSchemas: Record<string, Schema> = {
  SignInMethods: responseObject<SignInMethods>('Ways to sign in to the console.', {
    password: { type: 'boolean', description: 'With an e-mail address and a password.' },
    oidc: { type: 'boolean', description: 'At the identity provider.' },
  }),
  LogoutRequest: {
    type: 'object',
    description: 'Form of a back-channel logout.',
    properties: {
      logout_token: { type: 'string', description: 'The token, a JWT that the provider signed.' },
    },
    required: ['logout_token'],
  },
};
