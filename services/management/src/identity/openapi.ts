import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import { LICENSES, PERMISSION_SETS } from '@runhook/database';
import {
  integerId,
  nullable,
  type Operation,
  type PathItem,
  type Paths,
  type PropertiesOf,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import type { AccountView } from './accounts.ts';
import type { Profile } from './api-key.ts';
import type { CallerPermission, WhoAmI } from './whoami.ts';

export const ACCOUNT_EXAMPLE: AccountView = {
  id: 1,
  identifier: 'act_3MMmRJEV9dZkhAlajvBokYDUOPh',
  name: 'Acme',
  plan: 'enterprise',
  deployment: 'multi_tenant',
  created_at: '2026-01-15T08:00:00Z',
};

/** The member of account 1 in the examples. */
export const ADA = { user_id: 7, email: 'ada@example.com', name: 'Ada' };
/** An invalid key: its checksum is wrong. */
const api_key = 'rhu_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE';

const ROTATED_EXAMPLE = { user_id: ADA.user_id, api_key };
const PROFILE_EXAMPLE: Profile = { ...ADA, api_key };

const tags = ['Accounts and users'];

export const NO_USER = failureWithReason(
  403,
  'A service token is not a user.',
  'Access denied: A service token is not a user.',
);

const listAccounts = (operationId: string): Operation => ({
  operationId,
  tags,
  summary: 'List the accounts of the caller',
  description: 'The accounts of which a user is a member, or the account of a service token. Oldest first.',
  parameters: PAGE,
  responses: operationResponses(
    'caller',
    { 200: success(200, 'A page of accounts.', schemaRef('Account'), ACCOUNT_EXAMPLE, 'list') },
    [400],
  ),
});

const getAccount = (operationId: string): PathItem => ({
  parameters: [parameter('AccountId')],
  get: {
    operationId,
    tags,
    summary: 'Get an account',
    description:
      'On any plan. An account that the caller does not belong to is a 403, whether it exists or not.',
    responses: operationResponses('account', {
      200: success(200, 'The account.', schemaRef('Account'), ACCOUNT_EXAMPLE),
    }),
  },
});

const WHO_AM_I_EXAMPLE: WhoAmI = {
  user: {
    id: ADA.user_id,
    email: ADA.email,
    name: ADA.name,
    first_name: 'Ada',
    last_name: '',
    permissions: [{ account_id: 1, license_type: 'developer', permission_sets: ['admin'], groups: [] }],
  },
  service_token: null,
};

const whoAmI = (operationId: string): Operation => ({
  operationId,
  tags,
  summary: 'Get the caller',
  description: 'The user or service token that calls, and its permissions by account. Never a secret.',
  responses: operationResponses(
    'caller',
    { 200: success(200, 'The caller.', schemaRef('WhoAmI'), WHO_AM_I_EXAMPLE) },
    [400],
  ),
});

/** Paths of the OpenAPI document; see docs/contract.md#identity. */
export const identityPaths: Paths = {
  '/api/v2/users/{user_id}/apikey': {
    parameters: [parameter('UserId')],
    post: {
      operationId: 'rotateApiKey',
      tags,
      summary: 'Replace one’s own API key',
      description:
        'Call it with the current key, or from the console. The old key is rejected from the response on. Of two concurrent calls with one key, one gets the new key. No request body.',
      responses: operationResponses(
        'account',
        {
          200: success(200, 'The new key.', schemaRef('RotatedApiKey'), ROTATED_EXAMPLE),
          403: failureWithReason(
            403,
            'The key is another user’s, or the caller is a service token, or a console session whose request does not come from the console.',
            'Access denied: Users may rotate their own API key only.',
          ),
          409: failureWithReason(
            409,
            'Another rotation was first. Only a console session gets this response; a caller with the old key gets a 401.',
            'The API key was rotated by another request.',
          ),
        },
        BODY_FAILURES,
      ),
    },
  },

  '/api/v2/accounts': { get: listAccounts('listAccounts') },
  '/api/v2/accounts/{account_id}': getAccount('getAccount'),
  '/api/v3/accounts': { get: listAccounts('listAccountsV3') },
  '/api/v3/accounts/{account_id}': getAccount('getAccountV3'),

  '/api/v2/whoami': { get: whoAmI('whoAmI') },
  '/api/v3/whoami': { get: whoAmI('whoAmIV3') },

  '/api/v3/profile': {
    get: {
      operationId: 'getProfile',
      tags,
      summary: 'Get one’s own profile, with the API key',
      description: 'For users only. The key is shown to its user only.',
      responses: operationResponses('caller', {
        200: success(200, 'The profile.', schemaRef('Profile'), PROFILE_EXAMPLE),
        403: NO_USER,
      }),
    },
  },
};

const API_KEY: Schema = {
  type: 'string',
  pattern: '^rhu_[0-9A-Za-z]{49}$',
  description: 'The user’s API key, a credential: keep it secret.',
};

/** Properties of an account in the OpenAPI document (docs/contract.md#identity). */
export const accountProperties: PropertiesOf<AccountView> = {
  id: integerId('The number of the account, which is used in paths.', 1),
  identifier: prefixedId('act_', 'Globally unique identifier of the account.'),
  name: text('Name of the account.'),
  plan: {
    type: 'string',
    enum: PLANS,
    description: 'The plan of the account. `team` and `enterprise` include webhooks.',
  },
  deployment: {
    type: 'string',
    enum: DEPLOYMENTS,
    description: 'The deployment of the account. `single_tenant_private` has no webhooks.',
  },
  created_at: secondsTime('When the account was created.'),
};

export const userProperties = {
  user_id: integerId('The number of the user.', 5),
  email: text('The address for signing in.'),
  name: text('Name of the user.'),
};

const PERMISSIONS: Schema = {
  type: 'array',
  items: responseObject<CallerPermission>('The permissions in one account.', {
    account_id: integerId('The account.', 1),
    license_type: {
      anyOf: [{ type: 'string', enum: LICENSES }, { type: 'null' }],
      description: 'The licence of a user; null for a service token.',
    },
    permission_sets: {
      type: 'array',
      items: { type: 'string', enum: PERMISSION_SETS },
      description: 'The permission sets.',
    },
    groups: { type: 'array', items: { type: 'string' }, maxItems: 0, description: 'Always empty.' },
  }),
  description: 'Permissions by account.',
};

export const identitySchemas: Record<string, Schema> = {
  Account: responseObject<AccountView>('An account of the caller.', accountProperties),

  Profile: responseObject<Profile>('The profile of the caller.', { ...userProperties, api_key: API_KEY }),

  WhoAmI: responseObject<WhoAmI>('The caller: a user or a service token, the other one is null.', {
    user: nullable(
      responseObject<NonNullable<WhoAmI['user']>>('The user.', {
        id: userProperties.user_id,
        email: userProperties.email,
        name: userProperties.name,
        first_name: text('First word of the name.'),
        last_name: text('The other words of the name.'),
        permissions: PERMISSIONS,
      }),
    ),
    service_token: nullable(
      responseObject<NonNullable<WhoAmI['service_token']>>('The service token.', {
        id: integerId('Id of the token.', 3),
        name: text('Name of the token.'),
        account_id: integerId('Its account.', 1),
        expires_at: nullable(secondsTime('When it expires; null: never.')),
        permissions: PERMISSIONS,
      }),
    ),
  }),

  RotatedApiKey: responseObject<{ user_id: number; api_key: string }>('The new key.', {
    user_id: userProperties.user_id,
    api_key: API_KEY,
  }),
};
