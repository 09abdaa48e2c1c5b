import {
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
import { EVENT_TYPE, SUBSCRIPTION_EXAMPLE } from '../subscriptions/openapi.ts';
import { UNNOTIFIED_REASONS, type UnnotifiedView } from './explain.ts';

const REASON: Schema = {
  type: 'string',
  enum: UNNOTIFIED_REASONS,
  description:
    '`plan`, `deployment`: the account had no webhooks. `created_later`, `inactive`: the webhook did not exist or was off. `event_type`, `job`, `run_status`, `environment`, `project`: it does not select the event. `feed_only`: it has no endpoint. `changed`: it matches now, and was changed since. `unknown`: it matches now, without a known change.',
};

const EXAMPLE: UnnotifiedView = {
  subscription_id: SUBSCRIPTION_EXAMPLE.id,
  webhook_name: SUBSCRIPTION_EXAMPLE.name,
  reason: 'inactive',
  message: 'It is off since 2026-11-20T14:02:00Z by ada@example.com.',
  since: '1795183320000000',
  by: 'ada@example.com',
  changed_at: null,
  changed_by: null,
  events: [{ event_type: 'job.run.completed', reason: 'inactive' }],
  notified_event_types: ['job.run.started'],
};

/** Schemas of the OpenAPI document; see docs/contract.md#why-a-webhook-did-not-hear-about-a-run. */
export const unnotifiedSchemas: Record<string, Schema> = {
  Unnotified: responseObject<UnnotifiedView>('Why a webhook has no delivery of events of a run.', {
    subscription_id: prefixedId('wsu_', 'Id of the webhook.'),
    webhook_name: text('Name of the webhook.'),
    reason: { ...REASON, description: `Reason for the event that came closest. ${REASON.description}` },
    message: text('The reason in a sentence; a second one names a change of the webhook since the event.'),
    since: nullable(microsTime('When the cause began, such as the deactivation; null without one.')),
    by: nullable(text('Its author: e-mail address of the user, name of the token, or `Runhook`.')),
    changed_at: nullable(microsTime('Last change of the webhook since the event; null without one.')),
    changed_by: nullable(text('Its author.')),
    events: {
      type: 'array',
      minItems: 1,
      description: 'The events without a delivery, in the order of sending.',
      items: responseObject<UnnotifiedView['events'][number]>('An event without a delivery.', {
        event_type: EVENT_TYPE,
        reason: REASON,
      }),
    },
    notified_event_types: {
      type: 'array',
      items: EVENT_TYPE,
      description: 'Events of the run that the webhook has a delivery of.',
    },
  }),
};

/** Paths of the OpenAPI document; see docs/contract.md#why-a-webhook-did-not-hear-about-a-run. */
export const unnotifiedPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/run/{run_id}/unnotified': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: {
      operationId: 'listUnnotifiedWebhooks',
      tags: ['Deliveries'],
      summary: 'List the webhooks that did not hear about a run, with the reasons',
      description:
        'Webhooks without a delivery of at least one event of the run, newest first; deleted ones are omitted. Evaluates the webhooks as they are now, and the audit log for activations, plans and changes since. Events that are `waiting`, `not_reported` or `expired` are not explained. Available on every plan, since the plan may be the reason.',
      parameters: [
        queryParameter('event_type', 'Only this event.', EVENT_TYPE),
        queryParameter('webhook_id', 'Only this webhook.', prefixedId('wsu_', 'Id of the webhook.')),
        ...PAGE,
      ],
      responses: operationResponses(
        'account',
        { 200: success(200, 'A page of webhooks.', schemaRef('Unnotified'), EXAMPLE, 'list') },
        [400],
      ),
    },
  },
};
