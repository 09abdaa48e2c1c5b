import { readFileSync } from 'node:fs';
import type { Schemas } from '@runhook/client';
import { FORMAT_NAMES, LABEL_KEY, OPTION_LIMITS } from '@runhook/contract';
import { InvalidArgumentError, type Option } from 'commander';
import { choice, option, parsers, repeatable } from './command.ts';

type Fields = Schemas['SubscriptionFields'];

/** Values of the options of a webhook's delivery. */
export interface DeliveryOptions {
  format?: string;
  formatOption?: [name: string, value: string][];
  runStatus?: (3 | 10 | 20)[];
  environment?: number[];
  project?: number[];
  ordered?: true;
  rateLimit?: number;
  label?: [key: string, value: string][];
  deactivateOn410?: true;
}

const RUN_STATUSES = { running: 3, success: 10, errored: 20 } as const;

/** Options of a format; returns new objects. */
export function formatOptions(): Option[] {
  return [
    choice('--format <format>', 'format of the body', FORMAT_NAMES),
    repeatable(
      '--format-option <name=value>',
      'option of the format; the value may be @ and a file; may be repeated',
      parseFormatOption,
    ),
  ];
}

/** Options of the filters; returns new objects. */
export function filterOptions(): Option[] {
  return [
    repeatable('--run-status <status>', 'only events of this status; may be repeated', parseRunStatus),
    repeatable('--environment <id>', 'only events of this environment; may be repeated', parsers.id),
    repeatable('--project <id>', 'only events of this project; may be repeated', parsers.id),
  ];
}

/** Options of the commands that create or change a webhook. Returns new objects, because commander modifies them. */
export function deliveryOptions(): Option[] {
  return [
    ...formatOptions(),
    ...filterOptions(),
    option('--ordered', 'sends the events of a run in order'),
    option('--rate-limit <number>', 'maximum number of requests per second', parseRate),
    repeatable('--label <key=value>', 'label; may be repeated', parseLabel),
    option('--deactivate-on-410', 'deactivates the webhook when its endpoint responds with 410'),
  ];
}

/** Returns the fields of a request; none that the command line omits. */
export function deliveryFields(options: DeliveryOptions): Partial<Fields> {
  const { format, formatOption, ordered, rateLimit, label, deactivateOn410 } = options;
  const { runStatus, environment, project } = options;
  const filters = {
    ...(runStatus !== undefined && { run_statuses: runStatus }),
    ...(environment !== undefined && { environment_ids: environment }),
    ...(project !== undefined && { project_ids: project }),
  };
  return {
    ...(format !== undefined && { format: format as NonNullable<Fields['format']> }),
    ...(formatOption !== undefined && { format_options: Object.fromEntries(formatOption) }),
    ...(Object.keys(filters).length > 0 && { filters }),
    ...(ordered !== undefined && { ordered }),
    ...(rateLimit !== undefined && { rate_limit: rateLimit }),
    ...(label !== undefined && { labels: Object.fromEntries(label) }),
    ...(deactivateOn410 !== undefined && { deactivate_on_410: deactivateOn410 }),
  };
}

/** Adds the filters and labels of the webhook that an update does not name, because each has a separate option. */
export function withStoredMembers(
  fields: Partial<Fields>,
  webhook: { [Name in 'filters' | 'labels']?: Schemas['Subscription'][Name] | undefined },
): Partial<Fields> {
  const { filters, labels } = fields;
  return {
    ...fields,
    ...(filters && { filters: { ...(webhook.filters as Fields['filters']), ...filters } }),
    ...(labels && { labels: { ...webhook.labels, ...labels } }),
  };
}

/** Rows for the text of a webhook; undefined for options that are not set. */
export function deliveryFacts(webhook: Schemas['Subscription']): [string, string | undefined][] {
  const { format, format_options: formatOptions, filters, rate_limit: rateLimit, labels } = webhook;
  return [
    ['format', format],
    ['format options', formatOptions && Object.keys(formatOptions).join(', ')],
    ['run statuses', filters?.run_statuses?.map(runStatusName).join(', ')],
    ['environments', filters?.environment_ids?.join(', ')],
    ['projects', filters?.project_ids?.join(', ')],
    ['ordered', webhook.ordered && 'yes'],
    ['rate limit', rateLimit === undefined ? undefined : `${rateLimit} per second`],
    ['labels', labels && Object.entries(labels).map(labelText).join(', ')],
    ['deactivated by 410', webhook.deactivate_on_410 && 'yes'],
  ];
}

function runStatusName(code: string): string {
  return Object.entries(RUN_STATUSES).find(([, value]) => String(value) === code)?.[0] ?? code;
}

function labelText([key, value]: [string, string]): string {
  return value === '' ? key : `${key}=${value}`;
}

function parsePair(text: string): [string, string] {
  const separator = text.indexOf('=');
  return separator === -1 ? [text, ''] : [text.slice(0, separator), text.slice(separator + 1)];
}

function parseFormatOption(text: string): [string, string] {
  const [name, value] = parsePair(text);
  if (name === '' || value === '') throw new InvalidArgumentError('It must be name=value, or name=@file.');
  return [name, value.startsWith('@') ? readValue(value.slice(1)) : value];
}

function readValue(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new InvalidArgumentError(`The file ${file} cannot be read.`);
  }
}

function parseRunStatus(text: string): number {
  const code = Object.entries(RUN_STATUSES).find(([name]) => name === text)?.[1];
  if (code === undefined)
    throw new InvalidArgumentError(`It must be one of ${Object.keys(RUN_STATUSES).join(', ')}.`);
  return code;
}

function parseRate(text: string): number {
  const { rateLimitMin, rateLimitMax } = OPTION_LIMITS;
  const value = /^\d{1,4}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= rateLimitMin && value <= rateLimitMax))
    throw new InvalidArgumentError(`It must be a number from ${rateLimitMin} to ${rateLimitMax}.`);
  return value;
}

export function parseLabel(text: string): [string, string] {
  const label = parsePair(text);
  if (!LABEL_KEY.test(label[0])) throw new InvalidArgumentError('It must be key=value, or a key.');
  return label;
}
