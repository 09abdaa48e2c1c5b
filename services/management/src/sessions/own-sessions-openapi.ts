import {
  count,
  nullable,
  type Paths,
  requestObject,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter, requestBody, SESSION_ID } from '../http/openapi/parameters.ts';
import {
  BODY_FAILURES,
  failure,
  failureWithReason,
  operationResponses,
  success,
} from '../http/openapi/responses.ts';
import { PASSWORD_LIMITS } from '../identity/users.ts';
import type { ChangedPasswordView, PasswordFields } from './change-password.ts';
import type { OwnSessionView } from './own-sessions.ts';
import { SIGN_IN_LIMITS } from './routes.ts';

const SESSION_EXAMPLE: OwnSessionView = {
  id: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  created_at: '2026-11-20T10:00:00Z',
  last_used_at: '2026-11-20T16:31:05Z',
  expires_at: '2026-11-21T10:00:00Z',
  client_address: '192.0.2.7',
  browser: 'Firefox on Linux',
  is_current: true,
};

const PASSWORDS_EXAMPLE: PasswordFields = {
  current_password: 'correct horse battery staple',
  new_password: 'a longer pass phrase with digits 42',
};

const tags = ['Accounts and users'];
const security = [{ session: [] }];

const NO_SESSION = failureWithReason(
  403,
  'The caller has a key and no session, or the request does not come from the console.',
  'Access denied: A key is not signed in.',
);

/** Paths of the OpenAPI document; see docs/contract.md#console-sessions. */
export const ownSessionPaths: Paths = {
  '/api/v3/profile/password': {
    put: {
      operationId: 'changePassword',
      tags,
      summary: 'Change one’s own password',
      description:
        'For users with a session. Ends the user’s other sessions; the API key does not change. Attempts count towards the limits of failed sign-ins. A 403 while passwords are switched off.',
      security,
      requestBody: requestBody('PasswordFields', 'The current and the new password.', PASSWORDS_EXAMPLE),
      responses: operationResponses(
        'caller',
        {
          200: success(200, 'The password was changed.', schemaRef('ChangedPassword'), { sessions_ended: 2 }),
          403: NO_SESSION,
          409: failureWithReason(
            409,
            'The user has no password, or another request changed it.',
            'The password was changed by another request.',
          ),
        },
        BODY_FAILURES,
      ),
    },
  },

  '/api/v3/profile/sessions': {
    get: {
      operationId: 'listSessions',
      tags,
      summary: 'List one’s own sessions',
      description: 'For users with a session. Latest use first.',
      security,
      parameters: PAGE,
      responses: operationResponses(
        'caller',
        {
          200: success(200, 'A page of sessions.', schemaRef('OwnSession'), SESSION_EXAMPLE, 'list'),
          403: NO_SESSION,
        },
        [400],
      ),
    },
    delete: {
      operationId: 'endSessions',
      tags,
      summary: 'Sign out everywhere',
      description: 'Ends all sessions of the user, with that of the caller.',
      security,
      responses: operationResponses('caller', {
        200: success(200, 'The sessions have ended.', schemaRef('SignedOut'), {}, 'deleted'),
        403: NO_SESSION,
      }),
    },
  },

  '/api/v3/profile/sessions/{session_id}': {
    parameters: [parameter('SessionId')],
    delete: {
      operationId: 'endSession',
      tags,
      summary: 'End one of one’s own sessions',
      description: 'May be the caller’s session.',
      security,
      responses: operationResponses('caller', {
        200: success(200, 'The session has ended.', schemaRef('SignedOut'), {}, 'deleted'),
        403: NO_SESSION,
        404: failure(404),
      }),
    },
  },
};

export const ownSessionSchemas: Record<string, Schema> = {
  OwnSession: responseObject<OwnSessionView>('A session of the caller.', {
    id: SESSION_ID,
    created_at: secondsTime('When the user signed in.'),
    last_used_at: secondsTime('Last use, up to a minute late.'),
    expires_at: secondsTime('Latest end of the session.'),
    client_address: nullable(
      text('Client address at the sign-in; null for a session of an earlier release.'),
    ),
    browser: nullable(text('Browser and system at the sign-in; null if they are unknown.')),
    is_current: { type: 'boolean', description: 'Whether it is the session of this request.' },
  }),

  PasswordFields: requestObject<PasswordFields>(
    'A change of the password.',
    {
      current_password: text('The current password.', {
        minLength: 1,
        maxLength: SIGN_IN_LIMITS.passwordCharactersMax,
      }),
      new_password: text('The new password, without control characters.', {
        minLength: PASSWORD_LIMITS.charactersMin,
        maxLength: PASSWORD_LIMITS.charactersMax,
      }),
    },
    ['current_password', 'new_password'],
  ),

  ChangedPassword: responseObject<ChangedPasswordView>('The result.', {
    sessions_ended: count('Number of the user’s other sessions, which were ended.'),
  }),
};
