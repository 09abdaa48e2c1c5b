import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import { LICENSES, PERMISSION_SETS } from '@runhook/database';
import {
  answerObject,
  type Header,
  integerId,
  type Operation,
  orNull,
  type Paths,
  type PropertiesOf,
  prefixedId,
  requestObject,
  requiredText,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter, requestBody } from '../http/openapi/parameters.ts';
import { answers, failureBecause, OF_A_BODY, success } from '../http/openapi/responses.ts';
import {
  type SessionAccountView,
  type SessionView,
  SIGN_IN_LIMITS,
  type SignInFields,
} from '../sessions/routes.ts';
import type { AccountView } from './accounts.ts';
import type { Profile } from './api-key.ts';

/** Ada, who belongs to account 1 of the other examples. */

export const ACCOUNT_EXAMPLE: AccountView = {
  id: 1,
  identifier: 'act_3MMmRJEV9dZkhAlajvBokYDUOPh',
  name: 'Acme',
  plan: 'enterprise',
  deployment: 'multi_tenant',
  created_at: '2026-01-15T08:00:00Z',
};

const ada = { user_id: 7, email: 'ada@example.com', name: 'Ada' };
/** Nobody's: its checksum is wrong. */
const api_key = 'rhu_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE';

export const SIGN_IN_EXAMPLE = { email: ada.email, password: 'correct horse battery staple' };
export const ROTATED_EXAMPLE = { user_id: ada.user_id, api_key };
export const PROFILE_EXAMPLE: Profile = { ...ada, api_key };

export const SESSION_EXAMPLE: SessionView = {
  ...ada,
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

/** See docs/contract.md#identity. */
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

const API_KEY: Schema = {
  type: 'string',
  pattern: '^rhu_[0-9A-Za-z]{49}$',
  description: 'The user’s API key, a credential: keep it secret.',
};

/** See docs/contract.md#identity. */
const account: PropertiesOf<AccountView> = {
  id: integerId('The number of the account, which paths name it by.', 1),
  identifier: prefixedId('act_', 'The account in a form that is unique everywhere.'),
  name: text('Name of the account.'),
  plan: {
    type: 'string',
    enum: PLANS,
    description: 'What the account pays for. Webhooks come with `team` and `enterprise`.',
  },
  deployment: {
    type: 'string',
    enum: DEPLOYMENTS,
    description: 'Where the account lives. `single_tenant_private` has no webhooks.',
  },
  created_at: secondsTime('When the account was created.'),
};

const user = {
  user_id: integerId('The number of the user.', 5),
  email: text('What the user signs in with.'),
  name: text('Name of the user.'),
};

export const identitySchemas: Record<string, Schema> = {
  Account: answerObject<AccountView>('An account that the caller belongs to.', account),

  Session: answerObject<SessionView>('Who calls, and what it may do where.', {
    ...user,
    accounts: {
      type: 'array',
      items: schemaRef('SessionAccount'),
      description: 'Every account that the user is a member of, the oldest first.',
    },
    expires_at: orNull(
      secondsTime('When the session ends at the latest; null for a caller with an API key.'),
    ),
  }),

  SessionAccount: answerObject<SessionAccountView>('An account, and what the user is in it.', {
    ...account,
    license: { type: 'string', enum: LICENSES, description: 'The licence that the user has there.' },
    permission_sets: {
      type: 'array',
      items: { type: 'string', enum: PERMISSION_SETS },
      description: 'The permission sets that the user has there.',
    },
    webhooks_unavailable: {
      anyOf: [{ type: 'string', enum: ['plan', 'deployment'] }, { type: 'null' }],
      description: 'What keeps the account from having webhooks; null when it has them.',
    },
    may_write_webhooks: {
      type: 'boolean',
      description: 'Whether the user may create, change, delete and test webhooks there.',
    },
  }),

  SignInFields: requestObject<SignInFields>(
    'Who signs in.',
    {
      email: requiredText(SIGN_IN_LIMITS.emailCharactersMax, 'E-mail address, in any case.'),
      password: text('Password.', { minLength: 1, maxLength: SIGN_IN_LIMITS.passwordCharactersMax }),
    },
    ['email', 'password'],
  ),

  SignedOut: answerObject<Record<never, never>>('Nothing.', {}),

  Profile: answerObject<Profile>('The caller’s own record.', { ...user, api_key: API_KEY }),

  RotatedApiKey: answerObject<{ user_id: number; api_key: string }>('The key from now on.', {
    user_id: user.user_id,
    api_key: API_KEY,
  }),
};
