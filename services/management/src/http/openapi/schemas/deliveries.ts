import type { AttemptView } from '../../../domain/attempt-view.ts';
import { DELIVERY_STATUSES, type DeliveryView } from '../../../domain/delivery-view.ts';
import { count, httpStatusText, idText, microsTime, orNull, prefixedId, text } from '../field-schemas.ts';
import { answerObject, type PropertiesOf, schemaRef } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';
import { EVENT_TYPE } from './subscriptions.ts';

export const DELIVERY_STATUS: Schema = {
  type: 'string',
  enum: DELIVERY_STATUSES,
  description:
    '`pending` while attempts are left; `delivered` after a 2xx; `failed` when the last attempt failed; `cancelled` when the webhook was inactive or gone, or the account had no webhooks, as its turn came.',
};

/** DESIGN, section 7, "Deliveries". */
const properties: PropertiesOf<DeliveryView> = {
  id: prefixedId('wdl_', 'Id of the delivery.'),
  subscription_id: prefixedId('wsu_', 'The webhook that it is for.'),
  event_id: prefixedId('wev_', 'The event; one event has one id for all webhooks and all attempts.'),
  event_type: EVENT_TYPE,
  job_id: idText('The job whose run it tells of.', '12'),
  job_name: text('Name of the job when the event happened.'),
  run_id: idText('The run that it tells of.', '345'),
  status: DELIVERY_STATUS,
  reason: { type: ['string', 'null'], description: 'Why it failed or was cancelled; null otherwise.' },
  attempt_count: count('Attempts made so far, of all cycles.'),
  http_status_code: httpStatusText(
    'Status of the latest attempt: what the endpoint answered, "504" when it did not in time, "502" when it could not be reached. "0" before the first.',
  ),
  created_at: microsTime('When the event was fanned out to this webhook.'),
  completed_at: orNull(microsTime('When it was delivered, failed or cancelled; null while it is pending.')),
  next_attempt_at: orNull(microsTime('When the next attempt is due; null when none is.')),
  duration_ms: orNull(count('How long the latest attempt took, in milliseconds; null before the first.')),
};

const HEADERS: Schema = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Headers by their lower-case names.',
};

export const deliverySchemas: Record<string, Schema> = {
  Delivery: answerObject<DeliveryView>('One event on its way to one webhook.', properties),

  DeliveryWithAttempts: answerObject<DeliveryView & { payload: string | null; attempts: AttemptView[] }>(
    'One delivery, with what was sent and how each attempt went.',
    {
      ...properties,
      payload: {
        type: ['string', 'null'],
        contentMediaType: 'application/json',
        contentSchema: schemaRef('DeliveryPayload'),
        description:
          'The exact text of the body, the same in every attempt. Null in the moment when retention has taken the event and not yet the delivery.',
      },
      attempts: {
        type: 'array',
        items: schemaRef('Attempt'),
        description: 'Every attempt, the first one first.',
      },
    },
  ),

  Attempt: answerObject<AttemptView>('One attempt to deliver.', {
    number: { type: 'integer', minimum: 1, description: 'Counted over all cycles of the delivery.' },
    trigger: {
      type: 'string',
      enum: ['automatic', 'manual'],
      description: 'Whether the event or its retries caused it, or a redelivery by hand.',
    },
    started_at: microsTime('When it started.'),
    duration_ms: count('How long it took, in milliseconds: connecting, request and answer together.'),
    http_status_code: httpStatusText(
      'What the endpoint answered; "504" when it did not in time, "502" when it could not be reached.',
    ),
    error: {
      anyOf: [schemaRef('AttemptError'), { type: 'null' }],
      description: 'Why the attempt failed; null when it did not.',
    },
    request_headers: {
      ...HEADERS,
      description: 'What was sent, by lower-case names. `***` stands for signatures.',
    },
    response_headers: {
      ...HEADERS,
      type: ['object', 'null'],
      description: 'What was answered, by lower-case names; null when nothing was.',
    },
    response_body: {
      type: ['string', 'null'],
      description: 'The beginning of what was answered, up to 16 KiB; null when nothing was.',
    },
    response_truncated: { type: 'boolean', description: 'Whether the answer was longer than is shown.' },
  }),

  AttemptError: answerObject<NonNullable<AttemptView['error']>>('Why an attempt failed.', {
    code: { type: 'string', description: 'For programs.', examples: ['timeout', 'connection_refused'] },
    message: { type: 'string', description: 'For people: one sentence.' },
  }),
};
