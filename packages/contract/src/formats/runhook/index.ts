import { EVENT_TYPES } from '../../event-types.ts';
import { renderPayload } from '../../payload.ts';
import type { Format } from '../format.ts';

/** The default: the payload of docs/contract.md#events. */
export const runhook: Format = {
  name: 'runhook',
  label: 'Runhook',
  eventTypes: EVENT_TYPES,
  sampleEventType: 'job.run.completed',
  recognises: () => false,
  options: {},
  render: ({ event, subscription }) => ({
    body: renderPayload(event, subscription),
    contentType: 'application/json',
  }),
  signatureHeader: 'Authorization',
  interpret: () => null,
  responses: [
    { statusCode: 204, body: '', result: 'delivered' },
    { statusCode: 410, body: '', result: 'retry' },
  ],
  limits: {},
};
