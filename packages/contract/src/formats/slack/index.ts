import { EVENT_TYPES } from '../../event-types.ts';
import { escapeAndTruncate } from '../escape.ts';
import type { Format, FormatInput, Interpretation, TargetResponse } from '../format.ts';
import { type Message, messageOf } from '../message.ts';
import { interpretStatus, rejection } from '../responses.ts';

/** Limits of Block Kit. The fallback text may have 40,000, but Slack recommends 4,000. */
const LIMITS = { text: 4_000, headerText: 150, sectionText: 3_000, fieldText: 2_000, contextText: 2_000 };
/** Longer names would make a message unreadable. */
const NAME_CHARACTERS_MAX = 120;

const SYMBOLS = { Running: '▶', Success: '✅', Errored: '❌', Canceled: '⏹' } as const;

const CONTROL_CHARACTERS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** The characters of Slack's control sequences, such as `<!here>`, as entities. */
function escapeMarkup(character: string): string {
  return CONTROL_CHARACTERS[character] ?? character;
}

function plainText(text: string, charactersMax: number) {
  // Slack interprets neither mentions, links nor formatting in plain text; `emoji: false` leaves `:name:` as it is.
  return { type: 'plain_text', text: escapeAndTruncate(text, charactersMax), emoji: false } as const;
}

function render(input: FormatInput) {
  const message = messageOf(input);
  const title = `${SYMBOLS[message.status]} ${nameOf(message.jobName)} ${message.outcome}`;
  const body = {
    text: escapeAndTruncate(title, LIMITS.text, escapeMarkup),
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: 'header', text: plainText(title, LIMITS.headerText) },
      { type: 'section', fields: fieldsOf(message) },
      ...(message.statusMessage === null
        ? []
        : [{ type: 'section', text: plainText(message.statusMessage, LIMITS.sectionText) }]),
      { type: 'context', elements: contextOf(message) },
    ],
  };
  return { body: JSON.stringify(body), contentType: 'application/json' };
}

function nameOf(name: string): string {
  return escapeAndTruncate(name, NAME_CHARACTERS_MAX - 1);
}

function fieldsOf({ environmentName, projectName, duration, runId }: Message) {
  const field = (label: string, value: string) => plainText(`${label}: ${value}`, NAME_CHARACTERS_MAX);
  return [
    field('Environment', environmentName),
    field('Project', projectName),
    field('Run', runId),
    ...(duration === null ? [] : [field('Duration', duration)]),
  ];
}

function contextOf({ runUrl, runId, webhookName }: Message) {
  const sender = plainText(`Sent by the webhook ${webhookName}`, LIMITS.contextText);
  if (runUrl === null) return [sender];
  // The address consists of the operator's `PUBLIC_URL` and numbers. A `|` would end it.
  const url = [...runUrl.replaceAll('|', '%7C')].map(escapeMarkup).join('');
  return [{ type: 'mrkdwn', text: `<${url}|Open run ${runId}>` }, sender];
}

/** Errors after which the address never works again: its app, installation or workspace was removed. */
const ADDRESS_REMOVED = /^(no_service(_id)?|no_active_hooks|no_team|team_disabled|invalid_token)$/;

function interpret(response: TargetResponse): Interpretation | null {
  if (ADDRESS_REMOVED.test(response.body.trim()) && response.statusCode >= 400)
    return { result: 'failed_and_off', message: rejection('Slack', response) };
  return interpretStatus('Slack', response);
}

/** An incoming webhook of Slack: Block Kit. */
export const slack: Format = {
  name: 'slack',
  label: 'Slack',
  eventTypes: EVENT_TYPES,
  sampleEventType: 'job.run.errored',
  // Addresses of workflows (`/triggers/`, `/workflows/`) accept only the variables that the workflow declares.
  recognises: ({ hostname, pathname }) =>
    /^hooks\.slack(-gov)?\.com$/.test(hostname) && pathname.startsWith('/services/'),
  options: {},
  render,
  signatureHeader: 'Authorization',
  interpret,
  responses: [
    { statusCode: 200, body: 'ok', result: 'delivered' },
    { statusCode: 400, body: 'invalid_payload', result: 'failed' },
    { statusCode: 400, body: 'no_text', result: 'failed' },
    { statusCode: 403, body: 'action_prohibited', result: 'failed' },
    { statusCode: 404, body: 'channel_not_found', result: 'failed' },
    { statusCode: 410, body: 'channel_is_archived', result: 'failed' },
    { statusCode: 404, body: 'no_service', result: 'failed_and_off' },
    { statusCode: 403, body: 'invalid_token', result: 'failed_and_off' },
    { statusCode: 404, body: 'no_team', result: 'failed_and_off' },
    { statusCode: 429, body: 'rate_limited', result: 'retry' },
    { statusCode: 500, body: 'rollup_error', result: 'retry' },
  ],
  limits: LIMITS,
};
