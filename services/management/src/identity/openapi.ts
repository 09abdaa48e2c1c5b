import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import {
  integerId,
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
  description: 'Those that a user is a member of, or the one that a service token belongs to. Oldest first.',
  parameters: PAGE,
  responses: operationResponses(
    'caller',
    { 200: success(200, 'A page of them.', schemaRef('Account'), ACCOUNT_EXAMPLE, 'list') },
    [400],
  ),
});

const getAccount = (operationId: string): PathItem => ({
  parameters: [parameter('AccountId')],
  get: {
    operationId,
    tags,
    summary: 'Get an account',
    description: 'On any plan; one that the caller has no part in is a 403, whether it exists or not.',
    responses: operationResponses('account', {
      200: success(200, 'It.', schemaRef('Account'), ACCOUNT_EXAMPLE),
    }),
  },
});

/** See docs/contract.md#identity. */
export const identityPaths: Paths = {
  '/api/v2/users/{user_id}/apikey': {
    parameters: [parameter('UserId')],
    post: {
      operationId: 'rotateApiKey',
      tags,
      summary: 'Replace one’s own API key',
      description:
        'Call it with the current key, or from the console. From the moment of the answer the old key is refused. Of two calls at once with one key, one gets the new key. Needs no body.',
      responses: operationResponses(
        'account',
        {
          200: success(200, 'The new key.', schemaRef('RotatedApiKey'), ROTATED_EXAMPLE),
          403: failureWithReason(
            403,
            'It is somebody else’s key, or the caller is a service token, or a console session whose request does not come from the console.',
            'Access denied: Users may rotate their own API key only.',
          ),
          409: failureWithReason(
            409,
            'Another rotation came first. Only a console session is told so; a caller by key gets the 401 of its old key.',
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

  '/api/v3/profile': {
    get: {
      operationId: 'getProfile',
      tags,
      summary: 'Get one’s own record, with the API key',
      description: 'Of a user. The key is told to nobody else.',
      responses: operationResponses('caller', {
        200: success(200, 'It.', schemaRef('Profile'), PROFILE_EXAMPLE),
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

/** See docs/contract.md#identity. */
export const accountProperties: PropertiesOf<AccountView> = {
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

export const userProperties = {
  user_id: integerId('The number of the user.', 5),
  email: text('What the user signs in with.'),
  name: text('Name of the user.'),
};

export const identitySchemas: Record<string, Schema> = {
  Account: responseObject<AccountView>('An account that the caller belongs to.', accountProperties),

  Profile: responseObject<Profile>('The caller’s own record.', { ...userProperties, api_key: API_KEY }),

  RotatedApiKey: responseObject<{ user_id: number; api_key: string }>('The key from now on.', {
    user_id: userProperties.user_id,
    api_key: API_KEY,
  }),
};
