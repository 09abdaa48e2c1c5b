import type { EventType } from '@runhook/contract';
import { isLongerThan } from '@runhook/contract/text';
import type { EndpointTestFields, Subscription, SubscriptionFields } from '../api/types.ts';

/** What the form holds. */
export interface WebhookValues {
  name: string;
  description: string;
  eventTypes: EventType[];
  /** Empty: all jobs. */
  jobIds: string[];
  clientUrl: string;
  /** Empty: `Authorization`. */
  signatureHeader: string;
  headers: OwnHeader[];
  active: boolean;
}

/** A header of the subscriber's own. */
export interface OwnHeader {
  /** Of its row. */
  key: string;
  name: string;
  /** Empty: the stored one, if there is one. */
  value: string;
  isStored: boolean;
}

/** Stands for a value that is stored, in what the API answers and takes. */
const MASK = '***';

export const NEW_WEBHOOK: WebhookValues = {
  name: '',
  description: '',
  eventTypes: [],
  jobIds: [],
  clientUrl: '',
  signatureHeader: '',
  headers: [],
  active: true,
};

export function valuesOf(subscription: Subscription): WebhookValues {
  return {
    name: subscription.name,
    description: subscription.description,
    eventTypes: subscription.event_types,
    jobIds: subscription.job_ids,
    clientUrl: subscription.client_url,
    signatureHeader: subscription.signature_header ?? '',
    headers: Object.keys(subscription.headers ?? {}).map((name) => ({
      key: name,
      name,
      value: '',
      isStored: true,
    })),
    active: subscription.active,
  };
}

export function fieldsOf(values: WebhookValues): SubscriptionFields {
  return {
    name: values.name.trim(),
    description: values.description,
    event_types: values.eventTypes,
    job_ids: values.jobIds.map(Number),
    client_url: values.clientUrl.trim(),
    signature_header: values.signatureHeader.trim() === '' ? null : values.signatureHeader.trim(),
    headers: Object.fromEntries(
      values.headers.map(({ name, value, isStored }) => [
        name.trim(),
        value === '' && isStored ? MASK : value,
      ]),
    ),
    active: values.active,
  };
}

/** What a test sends before these are saved. A stored value is not known here, and so not sent. */
export function testFieldsOf(values: WebhookValues, eventType: EventType): EndpointTestFields {
  const { name, client_url, signature_header = null } = fieldsOf(values);
  const told = values.headers.filter((header) => header.value !== '' || !header.isStored);
  const headers = Object.fromEntries(told.map((header) => [header.name.trim(), header.value]));
  return { name, client_url, event_type: eventType, signature_header, headers };
}

/** Whether deliveries go where they went, by the same headers: what is stored can be tested then, with its own secret. */
export function isSentAsBefore(values: WebhookValues, before: WebhookValues): boolean {
  const sent = (of: WebhookValues) => {
    const { client_url, signature_header, headers } = fieldsOf(of);
    return JSON.stringify([client_url, signature_header, headers]);
  };
  return sent(values) === sent(before);
}

/** What stands in the way of a test; the rest of the form may wait. */
export function checkTested(values: WebhookValues): FieldProblems {
  const { clientUrl, headers } = checkWebhook(values);
  return { ...(clientUrl !== undefined && { clientUrl }), ...(headers !== undefined && { headers }) };
}

export type WebhookField = keyof WebhookValues;
export type FieldProblems = Partial<Record<WebhookField, string>>;

/** What the API takes at most; a test holds it against the contract's own. */
export const LIMITS = {
  name: 255,
  description: 2_000,
  clientUrl: 2_048,
  jobIds: 1_000,
  headers: 10,
  headerName: 64,
  headerValue: 2_048,
} as const;

/** In the order of the page, which is the order in which problems get the focus. */
export const FIELDS_IN_ORDER: readonly WebhookField[] = [
  'name',
  'description',
  'eventTypes',
  'jobIds',
  'clientUrl',
  'signatureHeader',
  'headers',
  'active',
];

/** What can be told before the server is asked. */
export function checkWebhook(values: WebhookValues): FieldProblems {
  const name = values.name.trim();
  const problems: FieldProblems = {};
  if (name === '') problems.name = 'Give the webhook a name.';
  else if (isLongerThan(name, LIMITS.name)) problems.name = tooLong(LIMITS.name);
  if (isLongerThan(values.description, LIMITS.description))
    problems.description = tooLong(LIMITS.description);
  if (values.eventTypes.length === 0) problems.eventTypes = 'Choose at least one event.';
  if (values.jobIds.length > LIMITS.jobIds)
    problems.jobIds = `Choose at most ${LIMITS.jobIds.toLocaleString()} jobs, or none for all jobs.`;
  const urlProblem = checkUrl(values.clientUrl.trim());
  if (urlProblem !== null) problems.clientUrl = urlProblem;
  const headersProblem = checkHeaders(values.headers);
  if (headersProblem !== null) problems.headers = headersProblem;
  return problems;
}

function checkUrl(text: string): string | null {
  if (text === '') return 'Enter the address that deliveries are sent to.';
  if (isLongerThan(text, LIMITS.clientUrl)) return tooLong(LIMITS.clientUrl);
  if (!/^https?:\/\//i.test(text)) return 'Enter a full address that begins with https:// or http://.';
  return URL.canParse(text) ? null : 'This is not a valid address.';
}

/** In an object a name has one value: what stands there twice must not be lost on the way to the server. */
function checkHeaders(headers: readonly OwnHeader[]): string | null {
  const names = headers.map(({ name }) => name.trim().toLowerCase());
  if (names.includes('')) return 'Give each header a name, or remove it.';
  if (new Set(names).size < names.length) return 'Give each header a different name.';
  if (headers.some(({ value, isStored }) => value === '' && !isStored)) return 'Give each header a value.';
  return null;
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
  signature_header: 'signatureHeader',
  headers: 'headers',
  active: 'active',
};

const LABELS: Readonly<Record<WebhookField, string>> = {
  name: 'The name',
  description: 'The description',
  eventTypes: 'The events',
  jobIds: 'The jobs',
  clientUrl: 'The endpoint',
  signatureHeader: 'The signature header',
  headers: 'The headers',
  active: 'Active',
};

/** The server's problems by field of the form. `event_types.0` is told beside the events. */
export function problemsOfServer(problems: Readonly<Record<string, string>>): FieldProblems {
  const told: FieldProblems = {};
  for (const [path, message] of Object.entries(problems)) {
    const field = FIELD_OF_API[path.split('.')[0] ?? ''];
    if (field === undefined || told[field] !== undefined) continue;
    // `headers.X-Gateway-Key` is about that one.
    const label = path.startsWith('headers.') ? path.slice('headers.'.length) : LABELS[field];
    told[field] = `${label} ${message}${message.endsWith('.') ? '' : '.'}`;
  }
  return told;
}
