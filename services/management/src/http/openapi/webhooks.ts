import {
  type DeliveryPayload,
  EVENT_LIMITS,
  EVENT_TYPES,
  type EventType,
  type RunDetails,
  SUBSCRIPTION_LIMITS,
} from '@runhook/contract';
import { SUBSCRIPTION_EXAMPLE } from '../../subscriptions/openapi.ts';
import {
  answerObject,
  idText,
  integerId,
  type Operation,
  type Parameter,
  type PathItem,
  type PropertiesOf,
  prefixedId,
  type Schema,
  schemaRef,
  secondsTime,
  text,
} from './field-schemas.ts';

const identity = {
  accountId: 1,
  webhooksID: SUBSCRIPTION_EXAMPLE.id,
  eventId: 'wev_3MMmRDA51yZpHdvPtc0ABzoUBAh',
  timestamp: '2026-11-20T10:00:00.123456000Z',
  webhookName: 'Runs to the pager',
};

const details = {
  jobId: '12',
  jobName: 'Nightly',
  runId: '345',
  environmentId: '4',
  environmentName: 'Production',
  engineVersion: '1.9.0',
  projectName: 'Analytics',
  projectId: '3',
  runStatus: 'Errored',
  runStatusCode: 20,
  runStatusMessage: 'Two models failed',
  runReason: 'Scheduled',
  runStartedAt: '2026-11-20T09:58:26Z',
};

export const PAYLOAD_EXAMPLES: Record<DeliveryPayload['eventType'], DeliveryPayload> = {
  'job.run.started': {
    ...identity,
    eventType: 'job.run.started',
    data: { ...details, runStatus: 'Running', runStatusCode: 3, runStatusMessage: 'None' },
  },
  'job.run.completed': {
    ...identity,
    eventType: 'job.run.completed',
    data: { ...details, runFinishedAt: '2026-11-20T10:00:00Z' },
  },
  'job.run.errored': {
    ...identity,
    eventType: 'job.run.errored',
    data: { ...details, runErroredAt: '2026-11-20T10:00:00Z' },
  },
};

const name = (description: string) => text(description, { maxLength: EVENT_LIMITS.nameCharactersMax });
const message = (description: string) => text(description, { maxLength: EVENT_LIMITS.messageCharactersMax });

/** `data` of an event (docs/contract.md#events). */
const runDetails: PropertiesOf<RunDetails> = {
  jobId: idText('Id of the job.', '12'),
  jobName: name('Name of the job.'),
  runId: idText('Id of the run.', '345'),
  environmentId: idText('Id of the environment.', '4'),
  environmentName: name('Name of the environment.'),
  engineVersion: name('Version of the engine that ran the job.'),
  projectName: name('Name of the project.'),
  projectId: idText('Id of the project.', '3'),
  runStatus: { ...name('Name of the status of the run.'), examples: ['Running', 'Success', 'Errored'] },
  runStatusCode: {
    type: 'integer',
    description: 'The status as a number.',
    examples: [3, 10, 20],
  },
  runStatusMessage: message('What there is to say about the status; "None" when there is nothing.'),
  runReason: message('How the run came to be started, in free text.'),
  runStartedAt: secondsTime('When the run started.'),
};

function payload(eventType: EventType, description: string, data: Schema): Schema {
  return answerObject<DeliveryPayload>(description, {
    accountId: integerId('The account.', 1),
    webhooksID: prefixedId('wsu_', 'The webhook that this delivery is for.'),
    eventId: prefixedId('wev_', 'The event, the same in every attempt: drop what you have seen.'),
    timestamp: {
      type: 'string',
      format: 'date-time',
      pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{9}Z$',
      description: 'When the event happened: RFC 3339 UTC, with nine digits after the seconds.',
      examples: ['2026-11-20T10:00:00.123456000Z'],
    },
    eventType: { type: 'string', const: eventType, description: 'Which event it is.' },
    webhookName: text('Name of the webhook.', { maxLength: SUBSCRIPTION_LIMITS.nameCharactersMax }),
    data,
  });
}

const SCHEMA_NAMES: Record<EventType, string> = {
  'job.run.started': 'RunStartedPayload',
  'job.run.completed': 'RunCompletedPayload',
  'job.run.errored': 'RunErroredPayload',
};

export function payloadRef(eventType: EventType): Schema {
  return schemaRef(SCHEMA_NAMES[eventType]);
}

export const payloadSchemas: Record<string, Schema> = {
  DeliveryPayload: {
    description: 'The body of a delivery; `eventType` tells which.',
    oneOf: EVENT_TYPES.map(payloadRef),
    discriminator: {
      propertyName: 'eventType',
      mapping: Object.fromEntries(EVENT_TYPES.map((type) => [type, payloadRef(type).$ref ?? ''])),
    },
  },

  RunStartedPayload: payload(
    'job.run.started',
    'A run has started.',
    answerObject<RunDetails>('The run, as it started.', runDetails),
  ),

  RunCompletedPayload: payload(
    'job.run.completed',
    'A run has finished, well or badly, and its artifacts are ingested.',
    answerObject<RunDetails & { runFinishedAt: string }>('The run, as it finished.', {
      ...runDetails,
      runFinishedAt: secondsTime('When the run finished.'),
    }),
  ),

  RunErroredPayload: payload(
    'job.run.errored',
    'A run has failed. Its artifacts may not be there yet.',
    answerObject<RunDetails & { runErroredAt: string }>('The run, as it failed.', {
      ...runDetails,
      runErroredAt: secondsTime('When the run failed.'),
    }),
  ),
};

const TEXTS: Record<EventType, { operationId: string; summary: string; description: string }> = {
  'job.run.started': {
    operationId: 'onRunStarted',
    summary: 'A run has started',
    description: 'Sent when it starts.',
  },
  'job.run.completed': {
    operationId: 'onRunCompleted',
    summary: 'A run has finished, well or badly',
    description:
      'Sent once its metadata and artifacts are ingested and can be asked for. Whoever needs logs or statuses of parts should use this one and look at `runStatus`.',
  },
  'job.run.errored': {
    operationId: 'onRunErrored',
    summary: 'A run has failed',
    description:
      'Sent at once; metadata and artifacts may not be there yet. `job.run.completed` follows for the same run, with an `eventId` of its own.',
  },
};

const header = (name: string, description: string, pattern: string): Parameter => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string', pattern },
});

/** Beside `Authorization`, which is the security scheme of deliveries. */
const HEADERS: Parameter[] = [
  header('webhook-id', 'The `eventId`, as libraries of Standard Webhooks want it.', '^wev_[0-9A-Za-z]{27}$'),
  header('webhook-timestamp', 'When this attempt was signed, in seconds since the epoch.', '^[0-9]+$'),
  header('webhook-signature', 'The Standard Webhooks signature.', '^v1,[0-9A-Za-z+/]+=*$'),
  header('user-agent', 'The service and its version.', '^Runhook/'),
];

function delivery(eventType: EventType): Operation {
  return {
    ...TEXTS[eventType],
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
        description: 'Answered in time: it is delivered. The body is kept in the log and means nothing.',
      },
      default: {
        description:
          'Anything else, a redirect or silence beyond the time limit (10 seconds unless the operator set another) is a failure: it is tried again up to five times, 30 seconds later and then after twice as long each time. `Retry-After` on a 429 or 503 can lengthen the wait.',
      },
    },
  };
}

/** What a subscriber's endpoint receives (docs/contract.md#events). */
export const WEBHOOKS: Record<string, PathItem> = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, { post: delivery(eventType) }]),
);
