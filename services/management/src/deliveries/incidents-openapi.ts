import { formatCount } from '@runhook/contract';
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
      advice: 'Edit the webhook and set its format to Slack, then resend the failed deliveries.',
      http_status_code: '400',
      error_code: 'unsuccessful_status',
      delivery_count: 100,
      delivery_id: DELIVERY.id,
      attempted_at: '1795168900123456',
    },
  ],
};

const COUNT_LIMIT_TEXT = `Counted up to ${formatCount(COUNT_MAX)}.`;

/** Paths of the OpenAPI document; see docs/contract.md#incidents. */
export const incidentPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/incidents': {
    parameters: [parameter('AccountId')],
    get: {
      operationId: 'listIncidents',
      tags: ['Webhooks'],
      summary: 'List the failing webhooks, since when and why',
      description:
        'Open incidents first, then closed ones; each newest first. An incident begins with the first of five consecutive failed attempts, or with the first of failures over one minute, and ends with the first attempt that succeeds. After its endpoint was changed or it was reactivated, a webhook must succeed as well before its incident closes.',
      parameters: [
        queryParameter('status', 'Filter by status.', { type: 'string', enum: INCIDENT_STATUSES }),
        queryParameter(
          'subscription_id',
          'Only incidents of this webhook.',
          prefixedId('wsu_', 'Id of the webhook.'),
        ),
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of incidents.', schemaRef('Incident'), INCIDENT_EXAMPLE, 'list') },
        [400],
      ),
    },
  },
};

const evidence = (description: string): Schema => ({
  type: ['object', 'null'],
  description,
  properties: {
    id: prefixedId('wdl_', 'Id of the delivery.'),
    created_at: microsTime('When the delivery was created.'),
  },
  required: ['id', 'created_at'],
  additionalProperties: false,
});

export const incidentSchemas: Record<string, Schema> = {
  Cause: responseObject<CauseView>('The cause of failures.', {
    code: {
      type: 'string',
      enum: CAUSE_CODES,
      description: 'Failures with the same cause have the same code.',
    },
    title: text('The cause, as a sentence.'),
    advice: text('The recommended action.'),
    http_status_code: httpStatusText('Status of the latest attempt with this cause.'),
    error_code: { type: ['string', 'null'], description: 'Error code of this attempt, as in the log.' },
    delivery_count: count(
      `Number of the newest deliveries that fail with this cause; ${SAMPLE_MAX} per incident are examined.`,
    ),
    delivery_id: prefixedId('wdl_', 'The latest delivery that fails with this cause.'),
    attempted_at: microsTime('Start of its latest failed attempt.'),
  }),
  Incident: responseObject<IncidentView>('A period in which attempts of a webhook failed.', {
    subscription_id: prefixedId('wsu_', 'The webhook.'),
    subscription_name: text('Name of the webhook.'),
    status: {
      type: 'string',
      enum: INCIDENT_STATUSES,
      description: '`closed` once an attempt has succeeded.',
    },
    since: microsTime('Start of the first failed attempt.'),
    until: nullable(
      microsTime(
        'Start of the attempt that ended the incident, or `endpoint_changed_at`; null while it is open.',
      ),
    ),
    endpoint_changed_at: nullable(
      microsTime(
        'When its endpoint was changed or the webhook was reactivated: the incident stays open until a later attempt succeeds. Otherwise null.',
      ),
    ),
    failure_count: count('Number of failed attempts.'),
    last_success_at: nullable(
      microsTime(
        'Start of the last successful attempt; null if there is none, for closed incidents, and with `endpoint_changed_at`.',
      ),
    ),
    delivery_count: count(`Deliveries with a failed attempt, and deliveries that wait. ${COUNT_LIMIT_TEXT}`),
    failed_count: count(
      `Deliveries of delivery_count that are failed now and can be redelivered. ${COUNT_LIMIT_TEXT}`,
    ),
    pending_count: count(`Deliveries of delivery_count that have attempts left. ${COUNT_LIMIT_TEXT}`),
    run_count: count(`Runs of their events. ${COUNT_LIMIT_TEXT}`),
    first_delivery: evidence('The oldest of them; null if the log no longer has any.'),
    last_delivery: evidence('The newest of them; null if the log no longer has any.'),
    causes: {
      type: 'array',
      items: schemaRef('Cause'),
      description: 'Causes, most frequent first; empty if the log no longer has any of the attempts.',
    },
  }),
};
