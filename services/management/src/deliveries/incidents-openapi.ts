import { CAUSE_CODES } from '@runhook/contract/causes';
import {
  count,
  httpStatusText,
  microsTime,
  nullable,
  type Paths,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { PAGE, parameter, queryParameter } from '../http/openapi/parameters.ts';
import { operationResponses, success } from '../http/openapi/responses.ts';
import { type CauseView, COUNT_MAX, SAMPLE_MAX } from './incident-evidence.ts';
import { INCIDENT_STATUSES, type IncidentView } from './incidents.ts';

const DELIVERY = { id: 'wdl_3MMmRIeb7hwtfgePeQ9Hc50jDdn', created_at: '1795168800123456' };

const INCIDENT_EXAMPLE: IncidentView = {
  subscription_id: 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn',
  subscription_name: 'Runs to the pager',
  status: 'open',
  since: '1795168800000000',
  until: null,
  endpoint_changed_at: null,
  failure_count: 378,
  last_success_at: '1795168700000000',
  delivery_count: 126,
  failed_count: 120,
  pending_count: 6,
  run_count: 126,
  first_delivery: DELIVERY,
  last_delivery: DELIVERY,
  causes: [
    {
      code: 'slack_no_text',
      title: '400 no_text: Slack needs a `text` field',
      advice: 'Put a relay between them that says it in the words of the target.',
      http_status_code: '400',
      error_code: 'unsuccessful_status',
      delivery_count: 100,
      delivery_id: DELIVERY.id,
      attempted_at: '1795168900123456',
    },
  ],
};

/** `toLocaleString` would load all locales of Node for one number. */
const COUNT_LIMIT_TEXT = `Counted up to ${COUNT_MAX / 1_000},000.`;

/** See docs/contract.md#incidents. */
export const incidentPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/incidents': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listIncidents',
      tags: ['Webhooks'],
      summary: 'List which webhooks fail, since when and why',
      description:
        'Those that fail now first, then those that have ended; each the newest first. An incident begins with the first of five attempts in a row that fail, or of those that fail for a minute, and ends by itself with the first that succeeds; another endpoint, and one that is switched on again, has to prove itself so.',
      parameters: [
        queryParameter('status', 'Only those.', { type: 'string', enum: INCIDENT_STATUSES }),
        queryParameter(
          'subscription_id',
          'Only those of this webhook.',
          prefixedId('wsu_', 'Id of the webhook.'),
        ),
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of them.', schemaRef('Incident'), INCIDENT_EXAMPLE, 'list') },
        [400],
      ),
    },
  },
};

const evidence = (description: string): Schema => ({
  type: ['object', 'null'],
  description,
  properties: {
    id: prefixedId('wdl_', 'Its id.'),
    created_at: microsTime('When it was created.'),
  },
  required: ['id', 'created_at'],
  additionalProperties: false,
});

export const incidentSchemas: Record<string, Schema> = {
  Cause: responseObject<CauseView>('Why deliveries fail.', {
    code: {
      type: 'string',
      enum: CAUSE_CODES,
      description: 'What fails for the same reason has the same code.',
    },
    title: text('What is the matter.'),
    advice: text('What to do about it.'),
    http_status_code: httpStatusText('Status of the latest attempt that failed so.'),
    error_code: { type: ['string', 'null'], description: 'Code of its error, as in the log.' },
    delivery_count: count(
      `How many of the newest deliveries fail so; ${SAMPLE_MAX} of an incident are looked at.`,
    ),
    delivery_id: prefixedId('wdl_', 'The latest delivery that fails so.'),
    attempted_at: microsTime('Start of its latest attempt that failed.'),
  }),
  Incident: responseObject<IncidentView>('A time in which every attempt of a webhook failed.', {
    subscription_id: prefixedId('wsu_', 'The webhook.'),
    subscription_name: text('Its name.'),
    status: {
      type: 'string',
      enum: INCIDENT_STATUSES,
      description: '`closed` once an attempt has succeeded.',
    },
    since: microsTime('Start of the first attempt that failed.'),
    until: nullable(
      microsTime('Start of the attempt that ended it, or `endpoint_changed_at`; null while it is open.'),
    ),
    endpoint_changed_at: nullable(
      microsTime(
        'When its endpoint was changed or the webhook was reactivated: the incident stays open until a later attempt succeeds. Otherwise null.',
      ),
    ),
    failure_count: count('Attempts that failed.'),
    last_success_at: nullable(
      microsTime('Start of the last attempt that succeeded; null without one, and of what is closed.'),
    ),
    delivery_count: count(`Deliveries with an attempt that failed, and those that wait. ${COUNT_LIMIT_TEXT}`),
    failed_count: count(`Those of them that are failed now, and can be sent again. ${COUNT_LIMIT_TEXT}`),
    pending_count: count(`Those of them that have attempts left. ${COUNT_LIMIT_TEXT}`),
    run_count: count(`Runs that they tell of. ${COUNT_LIMIT_TEXT}`),
    first_delivery: evidence('The oldest of them; null when the log has none any more.'),
    last_delivery: evidence('The newest of them; null when the log has none any more.'),
    causes: {
      type: 'array',
      items: schemaRef('Cause'),
      description: 'Why, the most frequent first; empty when the log has none of its attempts any more.',
    },
  }),
};
