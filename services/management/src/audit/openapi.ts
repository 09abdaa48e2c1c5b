import {
  idText,
  microsTime,
  type Paths,
  responseObject,
  type Schema,
  schemaRef,
  TIMESTAMP,
  TIMESTAMP_FORMATS,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter, queryParameter } from '../http/openapi/parameters.ts';
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

/** See docs/contract.md#audit-log. */
export const auditPaths: Paths = {
  '/api/v3/accounts/{account_id}/audit': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listAuditEntries',
      tags: ['Accounts and users'],
      summary: 'List who changed what of an account, and when',
      description:
        'Newest first, of the last year. Needs the permission set `account_admin` or `admin`, on any plan.',
      parameters: [
        queryParameter('action', 'Only those.', { type: 'string', enum: AUDIT_ACTIONS }),
        queryParameter('since', `Only those at or after it. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
        queryParameter('until', `Only those before it. ${TIMESTAMP_FORMATS}`, TIMESTAMP),
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('AuditEntry'), AUDIT_EXAMPLE, 'list') },
        [400],
      ),
    },
  },
};

export const auditSchemas: Record<string, Schema> = {
  AuditEntry: responseObject<AuditEntryView>('One change.', {
    id: idText('Id of the entry, greater than those before it.', '4711'),
    created_at: microsTime('When.'),
    action: { type: 'string', enum: AUDIT_ACTIONS, description: 'What was done.' },
    actor: responseObject<AuditEntryView['actor']>('Who did it.', {
      kind: {
        type: 'string',
        enum: ACTOR_KINDS,
        description: '`operator`: by the command line, or in the database. `service`: by itself.',
      },
      id: { type: ['string', 'null'], description: 'Id of the user or token.' },
      name: {
        type: ['string', 'null'],
        description: 'E-mail address of the user, name of the token, as they were then.',
      },
    }),
    target: responseObject<AuditEntryView['target']>('What it was done to.', {
      kind: { type: 'string', enum: TARGET_KINDS, description: 'Kind of the target.' },
      id: text('Id of the webhook, user, token or account.'),
      name: text('Its name, or the e-mail address of the user, as it was then.'),
    }),
    details: {
      type: 'object',
      additionalProperties: true,
      description:
        'What else there is to tell: `changed` names fields, never their values; `address` is where a sign-in came from.',
    },
  }),
};
