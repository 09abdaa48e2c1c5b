import { FORMATS, formatByName } from '@runhook/contract/formats';
import { isLongerThan } from '@runhook/contract/text';
import type { WebhookValues } from './webhook-values.ts';

export type WebhookField = keyof WebhookValues;
export type FieldProblems = Partial<Record<WebhookField, string>>;

/** Limits of the API. A test compares them with the contract's. */
export const LIMITS = {
  name: 255,
  description: 2_000,
  clientUrl: 2_048,
  jobIds: 1_000,
  headers: 10,
  headerName: 64,
  headerValue: 2_048,
  labels: 10,
  labelName: 63,
  labelValue: 255,
  rateLimitMin: 0.1,
  rateLimitMax: 1_000,
} as const;

/** Fields that are always shown, in their order on the page. */
const MAIN_FIELDS = ['name', 'eventTypes', 'clientUrl', 'format', 'formatOptions'] as const;

/** Options of requests to the endpoint, in their order on the page. */
export const DELIVERY_FIELDS = [
  'ordered',
  'rateLimit',
  'deactivateOn410',
  'signatureHeader',
  'headers',
  'signatureKey',
] as const satisfies readonly WebhookField[];

/** Fields below “More options”, in their order on the page. */
const OPTION_FIELDS = [
  'description',
  'jobIds',
  'runStatuses',
  'environmentIds',
  'projectIds',
  ...DELIVERY_FIELDS,
  'labels',
  'isFeedOnly',
  'active',
] as const satisfies readonly WebhookField[];

/** The first field with a problem gets the focus. */
export const FIELDS_IN_ORDER: readonly WebhookField[] = [...MAIN_FIELDS, ...OPTION_FIELDS];

export function isOptionField(field: WebhookField): boolean {
  return (OPTION_FIELDS as readonly WebhookField[]).includes(field);
}

/** Returns the problems that can be found without the server. */
export function checkWebhook(values: WebhookValues): FieldProblems {
  const name = values.name.trim();
  const problems: FieldProblems = {};
  const add = (field: WebhookField, problem: string | null) => {
    if (problem !== null) problems[field] = problem;
  };
  if (name === '') problems.name = 'Give the webhook a name.';
  else if (isLongerThan(name, LIMITS.name)) problems.name = tooLong(LIMITS.name);
  if (isLongerThan(values.description, LIMITS.description))
    problems.description = tooLong(LIMITS.description);
  if (values.eventTypes.length === 0) problems.eventTypes = 'Choose at least one event.';
  if (values.jobIds.length > LIMITS.jobIds)
    problems.jobIds = `Choose at most ${LIMITS.jobIds.toLocaleString()} jobs, or none for all jobs.`;
  if (!values.isFeedOnly) add('clientUrl', checkUrl(values.clientUrl.trim()));
  add('headers', checkHeaders(values.headers));
  add('labels', checkLabels(values.labels));
  add('rateLimit', checkRateLimit(values.rateLimit));
  return problems;
}

/**
 * Returns the problems that prevent a test, which needs only some of the fields.
 * @param sendsStored whether the test sends the stored values of options
 */
export function checkTestFields(values: WebhookValues, sendsStored: boolean): FieldProblems {
  const { clientUrl, headers } = checkWebhook(values);
  const [missing] = listMissingOptions(values, sendsStored);
  return {
    ...(clientUrl !== undefined && { clientUrl }),
    ...(headers !== undefined && { headers }),
    ...(missing !== undefined && { formatOptions: describeMissingOption(missing) }),
  };
}

interface MissingOption {
  label: string;
  isStored: boolean;
}

/** Returns the required options of the format for which a test would send no value. */
export function listMissingOptions(
  { format, formatOptions, storedFormatOptions }: WebhookValues,
  sendsStored: boolean,
): MissingOption[] {
  return Object.entries(formatByName(format)?.options ?? {}).flatMap(([name, { label, required }]) => {
    const isStored = storedFormatOptions.includes(name);
    const isSent = (formatOptions[name]?.trim() ?? '') !== '' || (isStored && sendsStored);
    return required && !isSent ? [{ label, isStored }] : [];
  });
}

export function describeMissingOption({ label, isStored }: MissingOption): string {
  return isStored
    ? `To test these changes, enter “${label}” again: stored values are sent only after the changes are saved.`
    : `Enter “${label}”.`;
}

function checkUrl(text: string): string | null {
  if (text === '') return 'Enter the address that deliveries are sent to.';
  if (isLongerThan(text, LIMITS.clientUrl)) return tooLong(LIMITS.clientUrl);
  if (!/^https?:\/\//i.test(text)) return 'Enter a full address that begins with https:// or http://.';
  return URL.canParse(text) ? null : 'This is not a valid address.';
}

/** An object has one value per name, so duplicate names must be found before the request is built. */
function checkHeaders(headers: WebhookValues['headers']): string | null {
  const names = headers.map(({ name }) => name.trim().toLowerCase());
  if (names.includes('')) return 'Give each header a name, or remove it.';
  if (new Set(names).size < names.length) return 'Give each header a different name.';
  if (headers.some(({ value, isStored }) => value === '' && !isStored)) return 'Give each header a value.';
  return null;
}

function checkLabels(labels: WebhookValues['labels']): string | null {
  const names = labels.map(({ name }) => name.trim());
  if (names.includes('')) return 'Give each label a name, or remove it.';
  return new Set(names).size < names.length ? 'Give each label a different name.' : null;
}

function checkRateLimit(text: string): string | null {
  if (text === '') return null;
  const rate = Number(text);
  if (rate >= LIMITS.rateLimitMin && rate <= LIMITS.rateLimitMax) return null;
  return `Enter a number from ${LIMITS.rateLimitMin} to ${LIMITS.rateLimitMax.toLocaleString()}.`;
}

function tooLong(charactersMax: number): string {
  return `Use at most ${charactersMax.toLocaleString()} characters.`;
}

const FIELD_OF_API: Readonly<Record<string, WebhookField>> = {
  name: 'name',
  description: 'description',
  event_types: 'eventTypes',
  job_ids: 'jobIds',
  client_url: 'clientUrl',
  format: 'format',
  format_options: 'formatOptions',
  filters: 'runStatuses',
  'filters.environment_ids': 'environmentIds',
  'filters.project_ids': 'projectIds',
  ordered: 'ordered',
  rate_limit: 'rateLimit',
  deactivate_on_410: 'deactivateOn410',
  labels: 'labels',
  signature_header: 'signatureHeader',
  headers: 'headers',
  signature_key: 'signatureKey',
  active: 'active',
};

const FIELD_LABELS: Readonly<Record<WebhookField, string>> = {
  name: 'The name',
  description: 'The description',
  eventTypes: 'The events',
  jobIds: 'The jobs',
  clientUrl: 'The endpoint',
  isFeedOnly: 'The feed',
  format: 'The format',
  formatOptions: 'The options of the format',
  storedFormatOptions: 'The options of the format',
  runStatuses: 'The filters',
  environmentIds: 'The environments',
  projectIds: 'The projects',
  ordered: 'The order',
  rateLimit: 'The rate limit',
  deactivateOn410: 'Switching off after 410 Gone',
  labels: 'The labels',
  signatureHeader: 'The signature header',
  headers: 'The headers',
  signatureKey: 'The key pair',
  active: 'Active',
};

/** Maps the server's problems to fields of the form: `event_types.0` belongs to the events. */
export function toFieldProblems(problems: Readonly<Record<string, string>>): FieldProblems {
  const fieldProblems: FieldProblems = {};
  for (const [path, message] of Object.entries(problems)) {
    const [first = '', second = ''] = path.split('.');
    const field = FIELD_OF_API[`${first}.${second}`] ?? FIELD_OF_API[first];
    if (field === undefined || fieldProblems[field] !== undefined) continue;
    const label = labelOfMember(first, path.slice(first.length + 1)) ?? FIELD_LABELS[field];
    fieldProblems[field] = `${label} ${message}${message.endsWith('.') ? '' : '.'}`;
  }
  return fieldProblems;
}

/** Returns the label of a member: `headers.X-Gateway-Key` is that header, `format_options.routing_key` has its label in the form. */
function labelOfMember(field: string, member: string): string | undefined {
  if (field === 'headers' && member !== '') return member;
  if (field !== 'format_options') return undefined;
  return FORMATS.find(({ options }) => options[member] !== undefined)?.options[member]?.label;
}
