import {
  idText,
  microsTime,
  type PathItem,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
  text,
} from '../http/openapi/field-schemas.ts';
import { accountParameter, PAGE, parameter, queryParameter } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { ACTOR_KINDS, AUDIT_ACTIONS, type AuditEntryView, TARGET_KINDS } from './routes.ts';

const AUDIT_EXAMPLE: AuditEntryView = {
  id: '4711',
  created_at: '1795168900000000',
  action: 'webhook.changed',
  actor: { kind: 'user', id: '7', name: 'ada@example.com' },
  target: { kind: 'webhook', id: 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn', name: 'Runs to the pager' },
  details: { changed: ['client_url', 'active'] },
};

const listEntries = (operationId: string, summary: string): PathItem => ({
  parameters: [parameter('AccountId')],
  get: {
    operationId,
    tags: ['Accounts and users'],
    summary,
    description:
      'Newest first, for the last year. Requires the permission set `account_admin` or `admin`, on any plan.',
    parameters: [
      queryParameter('action', 'Filter by action.', { type: 'string', enum: AUDIT_ACTIONS }),
      queryParameter('since', `Only entries at or after this time. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
      queryParameter('until', `Only entries before this time. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
      queryParameter(
        'logged_at_start',
        'The same as `since`, as clients of the API family name it.',
        TIMESTAMP,
      ),
      queryParameter(
        'logged_at_end',
        'Only entries at or before this time, or on this day. Formats as of `until`.',
        TIMESTAMP,
      ),
      accountParameter(),
      ...PAGE,
    ],
    responses: operationResponses(
      'account',
      { 200: success(200, 'A page of entries.', schemaRef('AuditEntry'), AUDIT_EXAMPLE, 'list') },
      [400],
    ),
  },
});

/** Paths of the OpenAPI document; see docs/contract.md#audit-log. */
export const auditPaths: Paths = {
  '/api/v3/accounts/{account_id}/audit': listEntries('listAuditEntries', 'List the changes to an account'),
  '/api/v3/accounts/{account_id}/audit-logs': listEntries(
    'listAuditLogs',
    'List the changes to an account, as clients of the API family call it',
  ),
};

export const auditSchemas: Record<string, Schema> = {
  AuditEntry: responseObject<AuditEntryView>('One change.', {
    id: idText('Id of the entry; ids increase with time.', '4711'),
    created_at: microsTime('Time of the change.'),
    action: { type: 'string', enum: AUDIT_ACTIONS, description: 'The action.' },
    actor: responseObject<AuditEntryView['actor']>('The actor.', {
      kind: {
        type: 'string',
        enum: ACTOR_KINDS,
        description:
          '`operator`: the command line, or a session of the database. `service`: the service itself. `anonymous`: a caller without a valid credential.',
      },
      id: { type: ['string', 'null'], description: 'Id of the user or token.' },
      name: {
        type: ['string', 'null'],
        description: 'E-mail address of the user or name of the token, at the time of the change.',
      },
    }),
    target: responseObject<AuditEntryView['target']>('The target of the action.', {
      kind: { type: 'string', enum: TARGET_KINDS, description: 'Kind of the target.' },
      id: text('Id of the webhook, user, token or account.'),
      name: text('Its name, or the e-mail address of the user, at the time of the change.'),
    }),
    details: {
      type: 'object',
      additionalProperties: true,
      description:
        'Further details: `changed` names fields, never their values; `address` is the client address of a sign-in, a change of the password or an end of sessions; `count` is the number of failed sign-ins from `network` in the 15 minutes from `window_start` (microseconds since the epoch, as digits).',
    },
  }),
};
