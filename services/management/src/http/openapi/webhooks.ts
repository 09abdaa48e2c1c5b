import {
  createSampleEvent,
  type DeliveryPayload,
  EVENT_LIMITS,
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  RUN_STATUS_CODES,
  RUN_TIMES,
  type RunDetails,
  renderPayload,
  SUBSCRIPTION_LIMITS,
} from '@runhook/contract';
import { SUBSCRIPTION_EXAMPLE } from '../../subscriptions/openapi.ts';
import {
  idText,
  integerId,
  type Operation,
  type Parameter,
  type PathItem,
  type PropertiesOf,
  prefixedId,
  responseObject,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from './field-schemas.ts';

const IDENTITY = {
  accountId: 1,
  eventId: 'wev_3MMmRDA51yZpHdvPtc0ABzoUBAh',
  timestamp: '2026-11-20T10:00:00.123456000Z',
};

const EXAMPLE_RUN = {
  jobId: '12',
  jobName: 'Nightly',
  runId: '345',
  environmentId: '4',
  environmentName: 'Production',
  engineVersion: '1.9.0',
  projectName: 'Analytics',
  projectId: '3',
  runReason: 'Scheduled',
  runStartedAt: '2026-11-20T09:58:26Z',
};

/** Returns the exact body of a sample delivery with an event of the type. */
export function bodyExample(eventType: EventType): string {
  const event = createSampleEvent(eventType, IDENTITY, EXAMPLE_RUN, () => '2026-11-20T10:00:00Z');
  return renderPayload(event, SUBSCRIPTION_EXAMPLE);
}

export const PAYLOAD_EXAMPLES = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, JSON.parse(bodyExample(eventType))]),
) as Record<EventType, DeliveryPayload>;

const name = (description: string) => text(description, { maxLength: EVENT_LIMITS.nameCharactersMax });
const message = (description: string) => text(description, { maxLength: EVENT_LIMITS.messageCharactersMax });

const SENT_STATUSES = [...new Set(EVENT_TYPES.flatMap((eventType) => EVENT_TYPE_TABLE[eventType].statuses))];

/** Fields that `data` has in every event (docs/contract.md#events). */
const runDetails: PropertiesOf<RunDetails> = {
  jobId: idText('Id of the job.', '12'),
  jobName: name('Name of the job.'),
  runId: idText('Id of the run.', '345'),
  environmentId: idText('Id of the environment.', '4'),
  environmentName: name('Name of the environment.'),
  engineVersion: name('Version of the engine that ran the job.'),
  projectName: name('Name of the project.'),
  projectId: idText('Id of the project.', '3'),
  runStatus: { ...name('Name of the status of the run.'), examples: SENT_STATUSES },
  runStatusCode: {
    type: 'integer',
    description: 'The status as a number.',
    examples: SENT_STATUSES.map((status) => RUN_STATUS_CODES[status]),
  },
  runStatusMessage: message('A message about the status; "None" if there is none.'),
  runReason: message('Why the run was started, in free text.'),
  runStartedAt: secondsTime('When the run started.'),
};

/** Returns the schema of `data` of an event of the type. */
export function runData(eventType: EventType): Schema {
  const { time } = EVENT_TYPE_TABLE[eventType];
  return responseObject('The run at the time of the event.', {
    ...runDetails,
    ...(time !== null && { [time]: secondsTime(RUN_TIMES[time].description) }),
  });
}

function payload(eventType: EventType): Schema {
  return responseObject<DeliveryPayload>(EVENT_TYPE_TABLE[eventType].fires, {
    accountId: integerId('The account.', 1),
    webhooksID: prefixedId('wsu_', 'The webhook of this delivery.'),
    eventId: prefixedId(
      'wev_',
      'The event, the same in every attempt: ignore an id that you have processed.',
    ),
    timestamp: {
      type: 'string',
      format: 'date-time',
      pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{9}Z$',
      description: 'When the event happened: RFC 3339 UTC with nine fractional digits.',
      examples: ['2026-11-20T10:00:00.123456000Z'],
    },
    eventType: { type: 'string', const: eventType, description: 'The type of the event.' },
    webhookName: text('Name of the webhook.', { maxLength: SUBSCRIPTION_LIMITS.nameCharactersMax }),
    data: schemaRef(dataName(eventType), 'The run at the time of the event.'),
  });
}

/** Converts `job.run.started` to `RunStarted`. */
export function typeName(eventType: EventType): string {
  const word = eventType.slice('job.run.'.length);
  return `Run${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

/** Name of the schema of an event's `data`, both published and delivered. */
export const dataName = (eventType: EventType) => `${typeName(eventType)}Data`;

const schemaName = (eventType: EventType) => `${typeName(eventType)}Payload`;

function payloadRef(eventType: EventType): Schema {
  return schemaRef(schemaName(eventType));
}

export const payloadSchemas: Record<string, Schema> = {
  DeliveryPayload: {
    description: 'The body of a delivery; `eventType` selects the schema.',
    oneOf: EVENT_TYPES.map(payloadRef),
    discriminator: {
      propertyName: 'eventType',
      mapping: Object.fromEntries(EVENT_TYPES.map((type) => [type, payloadRef(type).$ref ?? ''])),
    },
  },
  ...Object.fromEntries(EVENT_TYPES.map((type) => [schemaName(type), payload(type)])),
  ...Object.fromEntries(EVENT_TYPES.map((type) => [dataName(type), runData(type)])),
};

const header = (name: string, description: string, pattern: string): Parameter => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string', pattern },
});

/** Headers in addition to `Authorization`, which is the security scheme of deliveries. */
const HEADERS: Parameter[] = [
  header('webhook-id', 'The `eventId`, as Standard Webhooks defines it.', '^wev_[0-9A-Za-z]{27}$'),
  header('webhook-timestamp', 'When this attempt was signed, in seconds since the epoch.', '^[0-9]+$'),
  header('webhook-signature', 'The Standard Webhooks signature.', '^v1,[0-9A-Za-z+/]+=*$'),
  header('user-agent', 'The name and version of the service.', '^Runhook/'),
];

function delivery(eventType: EventType): Operation {
  const { label, fires, remark } = EVENT_TYPE_TABLE[eventType];
  return {
    operationId: `on${typeName(eventType)}`,
    summary: label,
    description: `${fires} ${remark}`.trim(),
    tags: ['Received by endpoints'],
    security: [{ deliverySignature: [] }],
    parameters: HEADERS,
    requestBody: {
      description: 'The same bytes in every attempt.',
      required: true,
      content: {
        'application/json': { schema: payloadRef(eventType), example: PAYLOAD_EXAMPLES[eventType] },
      },
    },
    responses: {
      '2XX': {
        description:
          'A 2xx in time: the event is delivered. The body is stored in the log and not interpreted.',
      },
      default: {
        description:
          'Any other response, a redirect, or no response within the time limit (by default 10 seconds) is a failure and is retried up to five times, after 30 seconds and then after twice as long each time. `Retry-After` on a 429 or 503 stops all requests to the webhook for that time, at most an hour, except for a probe each minute.',
      },
    },
  };
}

/** Requests that a subscriber's endpoint receives (docs/contract.md#events). */
export const WEBHOOKS: Record<string, PathItem> = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, { post: delivery(eventType) }]),
);
