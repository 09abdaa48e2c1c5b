import { PERMISSION_SETS } from '@runhook/database';
import {
  integerId,
  nullable,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import type { TokenView } from './tokens.ts';

const TOKEN_EXAMPLE: TokenView = {
  id: 3,
  name: 'CI',
  permission_sets: ['job_runner'],
  created_at: '2026-11-20T10:00:00Z',
  expires_at: '2027-02-18T10:00:00Z',
  last_used_at: '2026-11-27T16:31:05Z',
  revoked_at: null,
};

/** Paths of the OpenAPI document; see docs/contract.md#identity. */
export const tokenPaths: Paths = {
  '/api/v3/accounts/{account_id}/tokens': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listTokens',
      tags: ['Accounts and users'],
      summary: 'List the service tokens of an account',
      description:
        'Newest first, with revoked and expired ones, without secrets. Requires the permission set `account_admin` or `admin`, on any plan.',
      parameters: PAGE,
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of tokens.', schemaRef('ServiceToken'), TOKEN_EXAMPLE, 'list') },
        [400],
      ),
    },
  },
};

export const tokenSchemas: Record<string, Schema> = {
  ServiceToken: responseObject<TokenView>('A service token, without its secret.', {
    id: integerId('Id of the token.', 3),
    name: text('Purpose of the token.'),
    permission_sets: {
      type: 'array',
      items: { type: 'string', enum: PERMISSION_SETS },
      description: 'The permission sets of the token.',
    },
    created_at: secondsTime('When the token was created.'),
    expires_at: nullable(secondsTime('When the token expires; null if it does not.')),
    last_used_at: nullable(
      secondsTime('Last use, up to about a minute late; null if the token was never used.'),
    ),
    revoked_at: nullable(secondsTime('When the token was revoked; null if it was not.')),
  }),
};
