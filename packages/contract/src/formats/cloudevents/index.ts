import { EVENT_TYPES } from '../../event-types.ts';
import { orderedData } from '../../payload.ts';
import { escapeAndTruncate } from '../escape.ts';
import type { Format, FormatInput } from '../format.ts';
import { runUrlOf } from '../message.ts';

/**
 * Receivers must accept events of up to 64 KiB (CloudEvents 1.0, *Size Limits*), and longer texts make larger ones. A
 * code point has up to six bytes in JSON.
 */
const LIMITS = { bodyBytes: 65_536, nameText: 500, messageText: 3_000 };

function render({ event, subscription, consoleUrl }: FormatInput) {
  const { eventId, eventType, timestamp, accountId } = event;
  const runUrl = runUrlOf(event, consoleUrl);
  const body = {
    specversion: '1.0',
    id: eventId,
    // `id` is unique in the account, and other installations have accounts with the same number.
    source: `${consoleUrl?.replace(/\/+$/, '') ?? 'urn:runhook'}/accounts/${accountId}`,
    type: eventType,
    subject: `jobs/${event.data.jobId}/runs/${event.data.runId}`,
    time: timestamp,
    datacontenttype: 'application/json',
    webhookid: subscription.id,
    ...(runUrl !== null && { runurl: runUrl }),
    data: truncatedData(orderedData(event)),
  };
  return { body: JSON.stringify(body), contentType: 'application/cloudevents+json; charset=utf-8' };
}

function truncatedData<Data extends object>(data: Data): Data {
  const entries = Object.entries(data).map(([field, value]) => {
    const charactersMax =
      field === 'runStatusMessage' || field === 'runReason' ? LIMITS.messageText : LIMITS.nameText;
    return [field, typeof value === 'string' ? escapeAndTruncate(value, charactersMax) : value];
  });
  return Object.fromEntries(entries) as Data;
}

/** A receiver of CloudEvents 1.0: the JSON format in structured mode, with the `data` of the payload. */
export const cloudevents: Format = {
  name: 'cloudevents',
  label: 'CloudEvents',
  eventTypes: EVENT_TYPES,
  sampleEventType: 'job.run.completed',
  recognises: () => false,
  options: {},
  render,
  signatureHeader: 'Authorization',
  interpret: () => null,
  responses: [
    { statusCode: 202, body: '', result: 'delivered' },
    { statusCode: 415, body: '', result: 'retry' },
  ],
  limits: LIMITS,
};
