import { EVENT_TYPES } from '../../event-types.ts';
import { escapeAndTruncate } from '../escape.ts';
import type { Format, FormatInput, Interpretation, TargetResponse } from '../format.ts';
import { messageOf } from '../message.ts';
import { excerpt, interpretStatus, isTransient, rejection } from '../responses.ts';

/** Teams accepts messages of up to 28 KB. A code point has up to six bytes in JSON. */
const LIMITS = { bodyBytes: 28_000, nameText: 200, messageText: 2_500 };

const COLORS = { Running: 'accent', Success: 'good', Errored: 'attention', Canceled: 'warning' } as const;

interface TextRun {
  type: 'TextRun';
  text: string;
  [property: string]: unknown;
}

/** Card elements of other types than `TextRun` interpret Markdown, mentions and links. */
function run(text: string, properties: Omit<TextRun, 'type' | 'text'> = {}): TextRun {
  return { type: 'TextRun', text: withoutFunctions(text), ...properties };
}

/** Cards evaluate `{{DATE(…)}}` and `{{TIME(…)}}` in every text. */
function withoutFunctions(text: string): string {
  return text.replace(/\{(?=\{)/g, '{\u200B');
}

function line(...inlines: TextRun[]) {
  return { type: 'RichTextBlock', inlines };
}

function render(input: FormatInput) {
  const message = messageOf(input);
  const { status, outcome, duration, statusMessage, runUrl } = message;
  const name = (text: string) => escapeAndTruncate(text, LIMITS.nameText);
  const fact = (label: string, value: string) =>
    line(run(`${label}: `, { isSubtle: true }), run(name(value)));
  const card = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    // Shown by clients that cannot show the card, as Markdown, so it contains no text of the event.
    fallbackText: `Run ${message.runId} ${outcome}`,
    body: [
      line(
        run(`${name(message.jobName)} ${outcome}`, {
          weight: 'bolder',
          size: 'large',
          color: COLORS[status],
        }),
      ),
      fact('Environment', message.environmentName),
      fact('Project', message.projectName),
      fact('Run', message.runId),
      ...(duration === null ? [] : [fact('Duration', duration)]),
      ...(statusMessage === null ? [] : [line(run(escapeAndTruncate(statusMessage, LIMITS.messageText)))]),
      line(run(`Sent by the webhook ${name(message.webhookName)}`, { isSubtle: true, size: 'small' })),
    ],
    ...(runUrl !== null && { actions: [{ type: 'Action.OpenUrl', title: 'Open run', url: runUrl }] }),
  };
  const attachment = {
    contentType: 'application/vnd.microsoft.card.adaptive',
    contentUrl: null,
    content: card,
  };
  const body = JSON.stringify({ type: 'message', attachments: [attachment] });
  return { body, contentType: 'application/json' };
}

/** A connector reports the status of Teams in the text of its 200. */
const TEAMS_STATUS = /returned HTTP error (\d{3})/;

function interpret(response: TargetResponse): Interpretation | null {
  const { statusCode } = response;
  if (statusCode >= 200 && statusCode < 300) return interpretBody(response);
  // The flow was deleted. One that is switched off, a 400, may be switched on again.
  if (statusCode === 404 && /"WorkflowNotFound"/.test(response.body))
    return { result: 'failed_and_off', message: rejection('Teams', response) };
  if (statusCode === 400 && /"WorkflowTriggerIsNotEnabled"/.test(response.body))
    return { result: 'retry', message: rejection('Teams', response) };
  return interpretStatus('Teams', response);
}

/** The body of a 2xx decides, because Teams responds with 200 and an error text. A 202 of a flow has no result yet. */
function interpretBody(response: TargetResponse): Interpretation {
  if (response.statusCode === 202) return { result: 'delivered' };
  if (!response.isComplete)
    return { result: 'retry', message: 'The response of Teams was cut off, so it may have been an error.' };
  if (!isError(response.body.trim())) return { result: 'delivered' };
  const status = Number(TEAMS_STATUS.exec(response.body)?.[1] ?? 500);
  const result = isTransient(status) ? 'retry' : 'failed';
  return {
    result,
    message: `Teams responded with ${response.statusCode} and an error: ${excerpt(response)}`,
  };
}

/**
 * Whether the body is JSON with an error, a text about an error, or a page, which is not of Teams. A flow may respond
 * with any other text, and a retry would post its message again.
 */
function isError(body: string): boolean {
  try {
    const value: unknown = JSON.parse(body);
    if (value !== null && typeof value === 'object') return 'error' in value && value.error !== null;
  } catch {
    // A text.
  }
  return /^<|\berrors?\b|\bfail(ed|ure)\b/i.test(body);
}

/** A workflow “Send webhook alerts to a channel” of Microsoft Teams: an Adaptive Card. */
export const teams: Format = {
  name: 'teams',
  label: 'Microsoft Teams',
  eventTypes: EVENT_TYPES,
  sampleEventType: 'job.run.errored',
  recognises: ({ hostname, pathname }) =>
    (/\.logic\.azure\.(com|us)$/.test(hostname) && pathname.includes('/workflows/')) ||
    (/\.environment\.api\.powerplatform\.(com|us)$/.test(hostname) && pathname.includes('/workflows/')) ||
    (/(\.webhook|^outlook)\.office(365)?\.com$/.test(hostname) && pathname.startsWith('/webhook')),
  options: {},
  render,
  // Azure rejects a request with two authorizations, and the address of a workflow has one (`sig`).
  signatureHeader: null,
  interpret,
  responses: [
    { statusCode: 202, body: '', result: 'delivered' },
    { statusCode: 200, body: '1', result: 'delivered' },
    { statusCode: 202, body: 'Accepted', result: 'delivered' },
    { statusCode: 200, body: 'Posted', result: 'delivered' },
    { statusCode: 200, body: '{"posted":true,"error":null}', result: 'delivered' },
    { statusCode: 200, body: '{"error":{"code":"x"}}', result: 'retry' },
    { statusCode: 200, body: '<html>', result: 'retry' },
    { statusCode: 200, body: '{"posted":tr', isComplete: false, result: 'retry' },
    {
      statusCode: 200,
      body: 'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0',
      result: 'retry',
    },
    {
      statusCode: 200,
      body: 'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 413 with ContextId tcid=0',
      result: 'failed',
    },
    {
      statusCode: 400,
      body: '{"error":{"code":"DirectApiRequestHasMoreThanOneAuthorization"}}',
      result: 'failed',
    },
    { statusCode: 400, body: '{"error":{"code":"WorkflowTriggerIsNotEnabled"}}', result: 'retry' },
    { statusCode: 401, body: '{"error":{"code":"DirectApiAuthorizationRequired"}}', result: 'failed' },
    { statusCode: 404, body: '{"error":{"code":"WorkflowNotFound"}}', result: 'failed_and_off' },
    { statusCode: 429, body: '', result: 'retry' },
    { statusCode: 502, body: '{"error":{"code":"NoResponse"}}', result: 'retry' },
  ],
  limits: LIMITS,
};
