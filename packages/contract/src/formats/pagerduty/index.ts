import type { JobRunEvent } from '../../events.ts';
import { notifiedStatus } from '../../reported-status.ts';
import { escapeAndTruncate, onOneLine } from '../escape.ts';
import type { Format, FormatInput, Interpretation, Rendering, TargetResponse } from '../format.ts';
import { type Message, messageOf } from '../message.ts';
import { interpretStatus, rejection } from '../responses.ts';

/** Limits of the Events API v2. `nameText` and `messageText` are Runhook's, below the size of the body. */
const LIMITS = { bodyBytes: 512_000, dedupKey: 255, summary: 1_024, nameText: 500, messageText: 10_000 };

/** Errored runs open the alert of their job, and the next success resolves it. */
function jobState(event: JobRunEvent): 'trigger' | 'resolve' | null {
  const status = notifiedStatus(event);
  if (status === 'Errored') return 'trigger';
  return status === 'Success' ? 'resolve' : null;
}

function render(input: FormatInput): Rendering {
  const action = jobState(input.event);
  if (action === null) {
    const runs = input.event.eventType === 'job.run.started' ? 'runs that start' : 'cancelled runs';
    return { nothing: `PagerDuty is not notified of ${runs}.` };
  }
  const message = messageOf(input);
  const body = {
    routing_key: input.options.routing_key ?? '',
    event_action: action,
    dedup_key: dedupKeyOf(input),
    ...(action === 'trigger' && triggerFields(input.event, message)),
  };
  return { body: JSON.stringify(body), contentType: 'application/json' };
}

/**
 * Identifies the alert of the job: by the installation, because several may notify one service of PagerDuty, by the
 * account and the job.
 */
function dedupKeyOf({ event, consoleUrl }: FormatInput): string {
  const suffix = `/${event.accountId}/${event.data.jobId}`;
  const installation = consoleUrl === null ? 'runhook' : consoleUrl.replace(/^[a-z]+:\/\/|\/+$/gi, '');
  return escapeAndTruncate(installation, LIMITS.dedupKey - suffix.length) + suffix;
}

function triggerFields({ timestamp, data }: JobRunEvent, message: Message) {
  const name = (text: string) => escapeAndTruncate(text, LIMITS.nameText);
  const { statusMessage, duration, runUrl } = message;
  const summary = `${name(message.jobName)} ${message.outcome} in ${name(message.environmentName)}`;
  const firstLine = statusMessage === null ? '' : `: ${onOneLine(statusMessage)}`;
  return {
    payload: {
      summary: escapeAndTruncate(summary + firstLine, LIMITS.summary),
      source: name(message.jobName),
      severity: 'error',
      timestamp,
      component: name(message.environmentName),
      group: name(message.projectName),
      class: 'job run',
      custom_details: {
        job: name(message.jobName),
        job_id: data.jobId,
        run_id: data.runId,
        environment: name(message.environmentName),
        project: name(message.projectName),
        status: message.status,
        ...(duration !== null && { duration }),
        ...(statusMessage !== null && {
          message: escapeAndTruncate(statusMessage, LIMITS.messageText),
        }),
        reason: escapeAndTruncate(message.reason, LIMITS.messageText),
        webhook: name(message.webhookName),
      },
    },
    ...(runUrl !== null && { links: [{ href: runUrl, text: `Run ${data.runId}` }], client_url: runUrl }),
    client: 'Runhook',
  };
}

function interpret(response: TargetResponse): Interpretation | null {
  if (response.statusCode === 202) return { result: 'delivered' };
  // Only 202 accepts an event, so another 2xx is not the Events API.
  if (response.statusCode < 300)
    return {
      result: 'failed',
      message: `${rejection('The endpoint', response)} PagerDuty responds with 202.`,
    };
  return interpretStatus('PagerDuty', response);
}

/** An integration “Events API v2” of PagerDuty. */
export const pagerduty: Format = {
  name: 'pagerduty',
  label: 'PagerDuty',
  eventTypes: ['job.run.completed', 'job.run.errored'],
  sampleEventType: 'job.run.errored',
  recognises: ({ hostname, pathname }) =>
    /^events(\.eu)?\.pagerduty\.com$/.test(hostname) && /^\/v2\/enqueue\/?$/.test(pathname),
  options: {
    routing_key: {
      label: 'Integration key',
      hint: 'Of an integration “Events API v2” of a service, 32 characters.',
      required: true,
      pattern: /^[0-9A-Za-z]{32}$/,
      problem: 'must be an integration key of 32 letters and digits',
    },
  },
  render,
  signatureHeader: 'Authorization',
  interpret,
  responses: [
    { statusCode: 202, body: '{"status":"success","message":"Event processed"}', result: 'delivered' },
    { statusCode: 200, body: '<html>', result: 'failed' },
    {
      statusCode: 400,
      body: '{"status":"invalid event","errors":["Invalid routing key"]}',
      result: 'failed',
    },
    { statusCode: 413, body: '', result: 'failed' },
    { statusCode: 429, body: '', result: 'retry' },
    { statusCode: 500, body: '', result: 'retry' },
  ],
  limits: LIMITS,
  jobState,
};
