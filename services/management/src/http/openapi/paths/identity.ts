import {
  ACCOUNT_EXAMPLE,
  PROFILE_EXAMPLE,
  ROTATED_EXAMPLE,
  SESSION_EXAMPLE,
  SIGN_IN_EXAMPLE,
} from '../identity-examples.ts';
import { schemaRef } from '../object-schemas.ts';
import type { Header, Operation, Paths } from '../openapi-types.ts';
import { PAGE, parameter } from '../parameters.ts';
import { requestBody } from '../request-body.ts';
import { answers, failureBecause, OF_A_BODY, success } from '../responses.ts';

const tags = ['Accounts and users'];

const SET_COOKIE: Record<string, Header> = {
  'Set-Cookie': {
    description: 'The cookie of the session: `HttpOnly`, `SameSite=Strict`, and `Secure` over https.',
    required: true,
    schema: { type: 'string', pattern: '^runhook_session=' },
  },
};

const NO_USER = failureBecause(
  403,
  'A service token is not a user.',
  'Access denied: A service token is not a user.',
);

const listAccounts = (operationId: string): Operation => ({
  operationId,
  tags,
  summary: 'List the accounts of the caller',
  description: 'Those that a user is a member of, or the one that a service token belongs to. Oldest first.',
  parameters: PAGE,
  responses: answers(
    'caller',
    { 200: success(200, 'A page of them.', schemaRef('Account'), ACCOUNT_EXAMPLE, 'list') },
    [400],
  ),
});

/** Spec, section 4.7; DESIGN, sections 4 and 7 ("Identity"). */
export const identityPaths: Paths = {
  '/api/v2/users/{user_id}/apikey/': {
    parameters: [parameter('UserId')],
    post: {
      operationId: 'rotateApiKey',
      tags,
      summary: 'Replace one’s own API key',
      description:
        'Call it with the current key, or from the console. From the moment of the answer the old key is refused. Of two calls at once with one key, one gets the new key. Needs no body.',
      responses: answers(
        'account',
        {
          200: success(200, 'The new key.', schemaRef('RotatedApiKey'), ROTATED_EXAMPLE),
          403: failureBecause(
            403,
            'It is somebody else’s key, or the caller is a service token, or a console session whose request does not come from the console.',
            'Access denied: Users may rotate their own API key only.',
          ),
          409: failureBecause(
            409,
            'Another rotation came first. Only a console session is told so; a caller by key gets the 401 of its old key.',
            'The API key was rotated by another request.',
          ),
        },
        OF_A_BODY,
      ),
    },
  },

  '/api/v2/accounts/': { get: listAccounts('listAccounts') },
  '/api/v3/accounts': { get: listAccounts('listAccountsV3') },

  '/api/v3/profile': {
    get: {
      operationId: 'getProfile',
      tags,
      summary: 'Get one’s own record, with the API key',
      responses: answers('caller', {
        200: success(200, 'It.', schemaRef('Profile'), PROFILE_EXAMPLE),
        403: NO_USER,
      }),
    },
  },

  '/api/v3/session': {
    get: {
      operationId: 'getSession',
      tags,
      summary: 'Who am I, and what may I do where?',
      responses: answers('caller', {
        200: success(200, 'The caller.', schemaRef('Session'), SESSION_EXAMPLE),
        403: NO_USER,
      }),
    },
    post: {
      operationId: 'signIn',
      tags,
      summary: 'Sign in to the console',
      description: 'Failed attempts are limited, for an e-mail address and for an address of the network.',
      security: [],
      requestBody: requestBody('SignInFields', 'Who it is.', SIGN_IN_EXAMPLE),
      responses: answers(
        'anyone',
        {
          201: {
            ...success(201, 'A session has begun.', schemaRef('Session'), SESSION_EXAMPLE),
            headers: SET_COOKIE,
          },
          401: failureBecause(
            401,
            'There is no such user, or the password is another: which of them is not told.',
            'The e-mail address or the password is wrong.',
          ),
        },
        OF_A_BODY,
      ),
    },
    delete: {
      operationId: 'signOut',
      tags,
      summary: 'Sign out',
      description: 'Ends the session on the server.',
      security: [{ session: [] }],
      responses: answers('caller', {
        200: {
          ...success(200, 'The session has ended.', schemaRef('SignedOut'), {}, 'deleted'),
          headers: SET_COOKIE,
        },
        403: failureBecause(
          403,
          'The caller has a key and no session, or the request does not come from the console.',
          'Access denied: A key is not signed in.',
        ),
      }),
    },
  },
};
