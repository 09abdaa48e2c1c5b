import { EVENT_TYPE_TABLE, EVENT_TYPES, type EventType, type PublishedEvent } from '@runhook/contract';
import {
  count,
  integerId,
  type Paths,
  prefixedId,
  reportedUtc,
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
  duplicate_count: 0,
  rejected_count: 0,
  events: [{ event_id: eventId, verdict: 'accepted' }],
};

/** Paths of the OpenAPI document; see docs/contract.md#publishing-over-rest. */
export const publishPaths: Paths = {
  '/api/v2/accounts/{account_id}/events': {
    parameters: [parameter('AccountId')],
    post: withIdempotencyKey({
      operationId: 'publishEvents',
      tags: ['Jobs and runs'],
      summary: 'Publish events of runs',
      description: `For job runners that manage their own runs, instead of reporting their steps: up to ${EVENTS_MAX} events in the format of the queue, on record with the response. Each event has its own result: an id that is already on record changes nothing. If no event is valid, nothing is recorded and the response is a 400. The body may have 2 MiB. Needs one of the permission sets \`job_runner\`, \`account_admin\` and \`admin\`, on any plan.`,
      requestBody: requestBody('EventsToPublish', 'The events.', {
        events: [{ eventId, eventType, accountId, timestamp, data }],
      }),
      responses: operationResponses(
        'runs',
        {
          202: success(
            202,
            'Events that are not rejected are on record and will be delivered.',
            schemaRef('PublishResult'),
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
      eventId: prefixedId(
        'wev_',
        'Unique per event, with a KSUID of about the current time. Default: a generated id.',
      ),
      eventType: { type: 'string', const: type, description: 'The type of the event.' },
      accountId: integerId('The account, which must be that of the path.', 1),
      timestamp: reportedUtc('When it happened: RFC 3339 UTC. Default: the time of the call.'),
      data: schemaRef(dataName(type), 'The run at the time of the event.'),
    },
    ['eventId', 'timestamp'] as never,
  );
}

/** Schemas of the OpenAPI document; see docs/contract.md#publishing-over-rest. */
export const publishSchemas: Record<string, Schema> = {
  EventsToPublish: requestObject<{ events: unknown[] }>(
    'Events of runs of one account.',
    {
      events: {
        type: 'array',
        items: schemaRef('EventToPublish'),
        minItems: 1,
        maxItems: EVENTS_MAX,
        description: 'The events. Unknown fields are dropped.',
      },
    },
    ['events'],
  ),

  EventToPublish: {
    description: 'An event in the format of the queue; `eventType` selects the schema.',
    oneOf: EVENT_TYPES.map(eventRef),
    discriminator: {
      propertyName: 'eventType',
      mapping: Object.fromEntries(EVENT_TYPES.map((type) => [type, eventRef(type).$ref ?? ''])),
    },
  },
  ...Object.fromEntries(EVENT_TYPES.map((type) => [eventName(type), event(type)])),

  PublishResult: responseObject<PublishResult>('The result of a call with events.', {
    accepted_count: count('Number of events that were recorded by this call.'),
    duplicate_count: count('Number of events whose id was already on record.'),
    rejected_count: count('Number of rejected events.'),
    events: {
      type: 'array',
      items: schemaRef('EventVerdict'),
      description: 'One result per event, in order.',
    },
  }),

  EventVerdict: responseObject<EventVerdict>(
    'The result for one event.',
    {
      event_id: {
        type: ['string', 'null'],
        description:
          'The id of the event, supplied or assigned; null for a rejected event without a valid id.',
      },
      verdict: {
        type: 'string',
        enum: VERDICTS,
        description:
          '`accepted`: recorded, and will be delivered to matching webhooks. `duplicate`: an event with this id was on record; nothing changes. `rejected`: invalid, or its id has other data; not stored.',
      },
      errors: {
        type: 'array',
        items: schemaRef('FieldError'),
        minItems: 1,
        description: 'Only for a rejected event: its problems, each field by its path in the event.',
      },
    },
    ['errors'],
  ),
};
