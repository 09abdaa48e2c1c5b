import type { EventType } from '@runhook/contract';
import { isLongerThan } from '@runhook/contract/text';
import type { EndpointTestFields, Subscription, SubscriptionFields } from '../api/types.ts';

export interface WebhookValues {
  name: string;
  description: string;
  eventTypes: EventType[];
  /** An empty array means all jobs. */
  jobIds: string[];
  clientUrl: string;
  /** An empty string means `Authorization`. */
  signatureHeader: string;
  headers: CustomHeader[];
  /** Whether a key pair signs in addition to the secret. */
  signatureKey: boolean;
  active: boolean;
}

export interface CustomHeader {
  /** React key of the row of the header. */
  key: string;
  name: string;
  /** An empty string keeps the stored value, if `isStored`. */
  value: string;
  isStored: boolean;
}

/** Represents a stored value in requests and responses of the API. */
const MASK = '***';

export const NEW_WEBHOOK: WebhookValues = {
  name: '',
  description: '',
  eventTypes: [],
  jobIds: [],
  clientUrl: '',
  signatureHeader: '',
  headers: [],
  signatureKey: false,
  active: true,
};

export function toFormValues(subscription: Subscription): WebhookValues {
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
    signatureKey: subscription.signature_key !== undefined,
    active: subscription.active,
  };
}

export function toApiFields(values: WebhookValues): SubscriptionFields {
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
    signature_key: values.signatureKey ? 'ed25519' : null,
    active: values.active,
  };
}

/** Returns the body of a test of unsaved values. Stored header values are unknown here, so they are not sent. */
export function toTestFields(values: WebhookValues, eventType: EventType): EndpointTestFields {
  const { name, client_url, signature_header = null } = toApiFields(values);
  const sentHeaders = values.headers.filter((header) => header.value !== '' || !header.isStored);
  const headers = Object.fromEntries(sentHeaders.map((header) => [header.name.trim(), header.value]));
  return { name, client_url, event_type: eventType, signature_header, headers };
}

/** Whether deliveries would go to the same URL with the same headers. The stored webhook can then be tested with its own secret. */
export function hasSameDestination(values: WebhookValues, initialValues: WebhookValues): boolean {
  const destination = (formValues: WebhookValues) => {
    const { client_url, signature_header, headers } = toApiFields(formValues);
    return JSON.stringify([client_url, signature_header, headers]);
  };
  return destination(values) === destination(initialValues);
}

/** Returns the problems that prevent a test, which needs only some of the fields. */
export function checkTestFields(values: WebhookValues): FieldProblems {
  const { clientUrl, headers } = checkWebhook(values);
  return { ...(clientUrl !== undefined && { clientUrl }), ...(headers !== undefined && { headers }) };
}

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
} as const;

/** Order of the fields on the page. The first field with a problem gets the focus. */
export const FIELDS_IN_ORDER: readonly WebhookField[] = [
  'name',
  'description',
  'eventTypes',
  'jobIds',
  'clientUrl',
  'signatureHeader',
  'headers',
  'signatureKey',
  'active',
];

/** Returns the problems that can be found without the server. */
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

/** An object has one value per name, so duplicate names must be found before the request is built. */
function checkHeaders(headers: readonly CustomHeader[]): string | null {
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
  signature_key: 'signatureKey',
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
  signatureKey: 'The key pair',
  active: 'Active',
};

/** Maps the server's problems to fields of the form: `event_types.0` belongs to the events. */
export function toFieldProblems(problems: Readonly<Record<string, string>>): FieldProblems {
  const fieldProblems: FieldProblems = {};
  for (const [path, message] of Object.entries(problems)) {
    const field = FIELD_OF_API[path.split('.')[0] ?? ''];
    if (field === undefined || fieldProblems[field] !== undefined) continue;
    // A path such as `headers.X-Gateway-Key` names the header.
    const label = path.startsWith('headers.') ? path.slice('headers.'.length) : LABELS[field];
    fieldProblems[field] = `${label} ${message}${message.endsWith('.') ? '' : '.'}`;
  }
  return fieldProblems;
}
