import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import { LICENSES, PERMISSION_SETS } from '@runhook/database';
import type { AccountView } from '../../../domain/account-view.ts';
import type { SessionAccountView, SessionView } from '../../../domain/session-view.ts';
import { SIGN_IN_LIMITS, type SignInFields } from '../../../domain/sign-in-request.ts';
import type { Profile } from '../../routes/profile.ts';
import { integerId, orNull, prefixedId, requiredText, secondsTime, text } from '../field-schemas.ts';
import { answerObject, type PropertiesOf, requestObject, schemaRef } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';

const API_KEY: Schema = {
  type: 'string',
  pattern: '^rhu_[0-9A-Za-z]{49}$',
  description: 'The user’s API key, a credential: keep it secret.',
};

/** DESIGN, section 4, "Identity". */
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
