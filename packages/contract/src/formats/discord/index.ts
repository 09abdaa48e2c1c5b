import { EVENT_TYPES } from '../../event-types.ts';
import { escapeAndTruncate } from '../escape.ts';
import type { Format, FormatInput, Interpretation, TargetResponse } from '../format.ts';
import { messageOf } from '../message.ts';
import { interpretStatus, rejection } from '../responses.ts';

/** Limits of an embed; `total` is that of all its texts. */
const LIMITS = {
  title: 256,
  description: 4_096,
  fieldName: 256,
  fieldValue: 1_024,
  footer: 2_048,
  total: 6_000,
};
/** Smaller than Discord's limits, so that the sum stays below `total`. */
const NAME_CHARACTERS_MAX = 200;

const COLORS = { Running: 0x3b82f6, Success: 0x16a34a, Errored: 0xdc2626, Canceled: 0x6b7280 } as const;

/**
 * Discord interprets Markdown in every text but the footer. A backslash before punctuation makes it literal; before a
 * colon, it also keeps addresses from becoming links.
 */
function escapeMarkdown(character: string): string {
  return /[!-/:-@[-`{-~]/.test(character) ? `\\${character}` : character;
}

function render(input: FormatInput) {
  const message = messageOf(input);
  const { status, outcome, duration, statusMessage, runUrl } = message;
  const name = (text: string) => escapeAndTruncate(text, NAME_CHARACTERS_MAX, escapeMarkdown);
  const field = (label: string, value: string) => ({ name: label, value: name(value), inline: true });
  const embed = {
    title: `${name(message.jobName)} ${outcome}`,
    ...(runUrl !== null && { url: runUrl }),
    ...(statusMessage !== null && {
      description: escapeAndTruncate(statusMessage, LIMITS.description, escapeMarkdown),
    }),
    color: COLORS[status],
    timestamp: `${input.event.timestamp.slice(0, 23)}Z`,
    fields: [
      field('Environment', message.environmentName),
      field('Project', message.projectName),
      field('Run', message.runId),
      ...(duration === null ? [] : [field('Duration', duration)]),
    ],
    footer: {
      text: `Sent by the webhook ${escapeAndTruncate(message.webhookName, NAME_CHARACTERS_MAX)}`,
    },
  };
  // Without `parse`, nothing in the message notifies anyone.
  const body = JSON.stringify({ embeds: [embed], allowed_mentions: { parse: [] } });
  return { body, contentType: 'application/json' };
}

function interpret(response: TargetResponse): Interpretation | null {
  const { statusCode, body } = response;
  // Unknown webhook, and invalid token: Discord bans the addresses of senders that continue.
  if ((statusCode === 404 || statusCode === 401) && /"code":\s*(10015|50027)\b/.test(body))
    return { result: 'failed_and_off', message: rejection('Discord', response) };
  return interpretStatus('Discord', response);
}

/** A webhook of a Discord channel: an embed. */
export const discord: Format = {
  name: 'discord',
  label: 'Discord',
  eventTypes: EVENT_TYPES,
  sampleEventType: 'job.run.errored',
  // An address that ends in `/slack` or `/github` accepts those formats.
  recognises: ({ hostname, pathname }) =>
    /^((ptb|canary)\.)?discord(app)?\.com$/.test(hostname) &&
    /^\/api\/(v\d+\/)?webhooks\/\d+\/[^/]+\/?$/.test(pathname),
  options: {},
  render,
  signatureHeader: 'Authorization',
  interpret,
  responses: [
    { statusCode: 204, body: '', result: 'delivered' },
    { statusCode: 400, body: '{"message": "Cannot send an empty message", "code": 50006}', result: 'failed' },
    { statusCode: 400, body: '{"message": "Invalid Form Body", "code": 50035}', result: 'failed' },
    {
      statusCode: 401,
      body: '{"message": "Invalid Webhook Token", "code": 50027}',
      result: 'failed_and_off',
    },
    { statusCode: 404, body: '{"message": "Unknown Webhook", "code": 10015}', result: 'failed_and_off' },
    {
      statusCode: 429,
      body: '{"message": "You are being rate limited.", "retry_after": 0.5}',
      result: 'retry',
    },
    { statusCode: 503, body: '', result: 'retry' },
  ],
  limits: LIMITS,
};
