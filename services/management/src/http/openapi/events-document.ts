import {
  EVENT_BATCH,
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  JOB_RUN_EVENTS,
  type PublishedEvent,
} from '@runhook/contract';
import { reportedSteps } from '../../runs/step-openapi.ts';
import { CONTACT, LICENSE } from './document.ts';
import { integerId, type PropertiesOf, prefixedId, reportedUtc, type Schema } from './field-schemas.ts';
import { bodyExample, payloadSchemas, runData, typeName } from './webhooks.ts';

/*
 * The messages of the queue (docs/contract.md#queue) in AsyncAPI 3.0, and the events as separate JSON Schemas, from the
 * same table as the OpenAPI document. They use only keywords that draft 7 has too, which AsyncAPI expects.
 */

/** Permits unknown fields: published ones are dropped, and later releases may add fields to deliveries. */
function allowAdditionalProperties(schema: Schema): Schema {
  const { additionalProperties: _, properties, ...rest } = schema;
  if (properties === undefined) return rest;
  const openEntries = Object.entries(properties).map(
    ([name, inner]) => [name, allowAdditionalProperties(inner)] as const,
  );
  return { ...rest, properties: Object.fromEntries(openEntries) };
}

const RUN_STEPS = reportedSteps(
  'Steps of the run, which are on record before the event is sent, at most 256 KiB. Steps that do not match are left out.',
  true,
);

function publishedEvent(eventType: EventType): Schema {
  const properties: PropertiesOf<PublishedEvent & { run_steps: unknown }> = {
    eventId: prefixedId(
      'wev_',
      'Its time must be within the retention of the log. An event that is published again with the same id is delivered once. Default: a generated id.',
    ),
    eventType: { type: 'string', const: eventType, description: 'The type of the event.' },
    accountId: integerId('The account.', 1),
    timestamp: reportedUtc('When the event happened: RFC 3339 UTC. Default: the time of publishing.'),
    data: allowAdditionalProperties(runData(eventType)),
    run_steps: RUN_STEPS,
  };
  const { fires } = EVENT_TYPE_TABLE[eventType];
  return { type: 'object', description: fires, properties, required: ['eventType', 'accountId', 'data'] };
}

const publishedName = (eventType: EventType) => `${typeName(eventType)}Event`;
const payloadName = (eventType: EventType) => `${typeName(eventType)}Payload`;

/** Returns a self-contained schema, a union over the event types. */
function standaloneSchema(
  file: string,
  title: string,
  nameOfType: (type: EventType) => string,
  schemas: Record<string, Schema>,
) {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: `urn:runhook:schema:${file.replace('.json', '')}`,
    title,
    oneOf: EVENT_TYPES.map((type) => ({ $ref: `#/definitions/${nameOfType(type)}` })),
    definitions: Object.fromEntries(EVENT_TYPES.map((type) => [nameOfType(type), schemas[nameOfType(type)]])),
  };
}

const PUBLISHED_SCHEMAS = Object.fromEntries(
  EVENT_TYPES.map((type) => [publishedName(type), publishedEvent(type)]),
);
const PAYLOAD_SCHEMAS = Object.fromEntries(
  EVENT_TYPES.map((type) => {
    // The OpenAPI document refers to the run's schema; a standalone schema must contain it.
    const { properties, ...payload } = payloadSchemas[payloadName(type)] ?? {};
    return [
      payloadName(type),
      allowAdditionalProperties({ ...payload, properties: { ...properties, data: runData(type) } }),
    ];
  }),
);

/** Schemas by file name below `/schemas/`. */
export const EVENT_SCHEMAS: Readonly<Record<string, object>> = {
  'published-event.json': standaloneSchema(
    'published-event.json',
    'A published event',
    publishedName,
    PUBLISHED_SCHEMAS,
  ),
  'delivery-payload.json': standaloneSchema(
    'delivery-payload.json',
    'The body of a delivery',
    payloadName,
    PAYLOAD_SCHEMAS,
  ),
};

const ref = (section: string, name: string) => ({ $ref: `#/${section}/${name}` });
const CHANNEL = 'jobRunEvents';

function message(eventType: EventType) {
  const { label, fires, remark } = EVENT_TYPE_TABLE[eventType];
  const { webhooksID: _, webhookName: __, ...payload } = JSON.parse(bodyExample(eventType));
  return {
    name: eventType,
    title: label,
    summary: `${fires} ${remark}`.trim(),
    payload: ref('components/schemas', publishedName(eventType)),
    examples: [{ name: 'sample', payload }],
  };
}

const BATCH = {
  name: EVENT_BATCH,
  title: 'Several events in one job',
  summary:
    'Costs the queue less. The id of the job is derived from the ids of its events, so that repeating a call has no effect.',
  payload: {
    type: 'object',
    required: ['events'],
    properties: {
      events: {
        type: 'array',
        minItems: 2,
        maxItems: 20,
        items: {
          allOf: [
            { oneOf: EVENT_TYPES.map((type) => ref('components/schemas', publishedName(type))) },
            { required: ['eventId'] },
          ],
        },
      },
    },
  },
};

const DESCRIPTION = `Job runners publish events of runs as jobs of a BullMQ queue, version 6, on Redis or PostgreSQL. \`@runhook/publisher\` does this for Node.js. Without it: use the queue \`${JOB_RUN_EVENTS}\`, on Redis with the prefix \`{runhook}\`, braces included, on PostgreSQL in the schema \`bullmq\`; the name of the job is the type of the event, its data the event, its id the \`eventId\`, and \`removeOnComplete\` is true. With BullMQ’s default prefix the events are not received.

Messages that do not match these schemas stay among the failed jobs. The requests that Runhook sends to endpoints are described in \`openapi.json\`, under webhooks.`;

const TAGS = [{ name: 'Jobs and runs', description: 'Events that job runners publish.' }];

/** Returns the queue in AsyncAPI 3.0, as served at `/asyncapi.json`. @param version of the service */
export function asyncApiDocument(version: string): object {
  const messages = {
    ...Object.fromEntries(EVENT_TYPES.map((type) => [typeName(type), message(type)])),
    RunBatch: BATCH,
  };
  const channelMessages = Object.keys(messages).map((name) => [name, ref('components/messages', name)]);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Runhook events',
      version,
      description: DESCRIPTION,
      contact: CONTACT,
      license: { name: LICENSE.name, url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      tags: TAGS,
    },
    defaultContentType: 'application/json',
    channels: {
      [CHANNEL]: {
        address: JOB_RUN_EVENTS,
        title: 'Events of job runs',
        description: 'A BullMQ queue: each message is a job.',
        messages: Object.fromEntries(channelMessages),
        tags: TAGS,
        'x-bullmq': { version: 6, redisPrefix: '{runhook}', postgresSchema: 'bullmq' },
      },
    },
    operations: {
      receiveEvents: {
        action: 'receive',
        channel: ref('channels', CHANNEL),
        summary: 'Runhook receives the events and delivers them to the webhooks that match them.',
        tags: TAGS,
        messages: Object.keys(messages).map((name) => ref(`channels/${CHANNEL}/messages`, name)),
      },
    },
    components: { messages, schemas: PUBLISHED_SCHEMAS },
  };
}
