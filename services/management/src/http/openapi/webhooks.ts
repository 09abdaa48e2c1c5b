import { EVENT_TYPES, type EventType } from '@runhook/contract';
import { PAYLOAD_EXAMPLES } from './examples.ts';
import type { Operation, Parameter, PathItem } from './openapi-types.ts';
import { payloadRef } from './schemas/payloads.ts';

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

/** Spec, sections 2.3, 5.3 and 6: what a subscriber's endpoint receives. */
export const WEBHOOKS: Record<string, PathItem> = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, { post: delivery(eventType) }]),
);
