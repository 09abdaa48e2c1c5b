import { EVENT_TYPE_TABLE, EVENT_TYPES, type EventType, type PublishedEvent } from '@runhook/contract';
import {
  count,
  integerId,
  type Paths,
  prefixedId,
  requestObject,
  responseObject,
  type Schema,
  schemaRef,
} from '../http/openapi/field-schemas.ts';
import { parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, operationResponses, success } from '../http/openapi/responses.ts';
import { dataName, PAYLOAD_EXAMPLES, typeName } from '../http/openapi/webhooks.ts';
import { EVENTS_MAX, type EventVerdict, type PublishResult, VERDICTS } from './publish-routes.ts';

const { eventId, eventType, accountId, timestamp, data } = PAYLOAD_EXAMPLES['job.run.errored'];

const PUBLISHED_EXAMPLE: PublishResult = {
  accepted_count: 1,
  known_count: 0,
  refused_count: 0,
  events: [{ event_id: eventId, verdict: 'accepted' }],
};

/** See docs/contract.md#publishing-over-rest. */
export const publishPaths: Paths = {
  '/api/v2/accounts/{account_id}/events': {
    parameters: [parameter('AccountId')],
    post: withIdempotencyKey({
      operationId: 'publishEvents',
      tags: ['Jobs and runs'],
      summary: 'Publish events of runs',
      description: `For job runners that know their runs themselves, in place of reporting their steps: up to ${EVENTS_MAX} events as the queue takes them, on record with the response. Each event has its own result: an id that is on record already changes nothing. If no event is valid, nothing is done and the response is a 400. The body may have 2 MiB. Needs one of the permission sets \`job_runner\`, \`account_admin\` and \`admin\`, on any plan.`,
      requestBody: requestBody('EventsToPublish', 'The events.', {
        events: [{ eventId, eventType, accountId, timestamp, data }],
      }),
      responses: operationResponses(
        'runs',
        {
          202: success(
            202,
            'What is not refused is on record, and on its way.',
            schemaRef('Publishing'),
            PUBLISHED_EXAMPLE,
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },
};

const eventName = (type: EventType) => `${typeName(type)}Event`;
const eventRef = (type: EventType) => schemaRef(eventName(type));

function event(type: EventType): Schema {
  return responseObject<PublishedEvent>(
    EVENT_TYPE_TABLE[type].fires,
    {
      eventId: prefixedId('wev_', 'Unique for the event, its KSUID of about now. Left out: one is made.'),
      eventType: { type: 'string', const: type, description: 'Which event it is.' },
      accountId: integerId('The account, which must be that of the path.', 1),
      timestamp: {
        type: 'string',
        format: 'date-time',
        pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|\\+00:00)$',
        description: 'When it happened: RFC 3339 UTC. Left out: the time of the call.',
        examples: ['2026-11-20T10:00:00.123456Z'],
      },
      data: schemaRef(dataName(type), 'The run, as it was then.'),
    },
    ['eventId', 'timestamp'] as never,
  );
}

/** See docs/contract.md#publishing-over-rest. */
export const publishSchemas: Record<string, Schema> = {
  EventsToPublish: requestObject<{ events: unknown[] }>(
    'Events of runs of one account.',
    {
      events: {
        type: 'array',
        items: schemaRef('EventToPublish'),
        minItems: 1,
        maxItems: EVENTS_MAX,
        description: 'The events. Fields that an event does not have are dropped.',
      },
    },
    ['events'],
  ),

  EventToPublish: {
    description: 'An event as the queue takes it; `eventType` tells which.',
    oneOf: EVENT_TYPES.map(eventRef),
    discriminator: {
      propertyName: 'eventType',
      mapping: Object.fromEntries(EVENT_TYPES.map((type) => [type, eventRef(type).$ref ?? ''])),
    },
  },
  ...Object.fromEntries(EVENT_TYPES.map((type) => [eventName(type), event(type)])),

  Publishing: responseObject<PublishResult>('What became of the events.', {
    accepted_count: count('How many are on record now that were not.'),
    known_count: count('How many were on record, by their id.'),
    refused_count: count('How many do not fit.'),
    events: { type: 'array', items: schemaRef('EventVerdict'), description: 'One for each event, in order.' },
  }),

  EventVerdict: responseObject<EventVerdict>(
    'What became of an event.',
    {
      event_id: {
        type: ['string', 'null'],
        description: 'Its id, or the one that it was given; null for a refused one that brought none.',
      },
      verdict: {
        type: 'string',
        enum: VERDICTS,
        description:
          '`accepted`: on record, and delivered to whoever subscribed. `known`: an event of that id was on record, and nothing changes. `refused`: it does not fit, and is not kept.',
      },
      errors: {
        type: 'array',
        items: schemaRef('FieldError'),
        minItems: 1,
        description:
          'Of a refused one, and absent from others: what is wrong, each field by its path in the event.',
      },
    },
    ['errors'],
  ),
};
