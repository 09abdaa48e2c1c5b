import type { EventType } from '@runhook/contract';
import type { Subscription, SubscriptionFields } from '../api/types.ts';

/** What the form holds. */
export interface WebhookValues {
  name: string;
  description: string;
  eventTypes: EventType[];
  /** Empty: all jobs. */
  jobIds: string[];
  clientUrl: string;
  active: boolean;
}

export const NEW_WEBHOOK: WebhookValues = {
  name: '',
  description: '',
  eventTypes: [],
  jobIds: [],
  clientUrl: '',
  active: true,
};

export function valuesOf(subscription: Subscription): WebhookValues {
  return {
    name: subscription.name,
    description: subscription.description,
    eventTypes: subscription.event_types,
    jobIds: subscription.job_ids,
    clientUrl: subscription.client_url,
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
    active: values.active,
  };
}

export type WebhookField = keyof WebhookValues;
export type FieldProblems = Partial<Record<WebhookField, string>>;

/** What the API takes at most; a test holds it against the contract's own. */
export const LIMITS = { name: 255, description: 2_000, clientUrl: 2_048, jobIds: 1_000 } as const;

/** In the order of the page, which is the order in which problems get the focus. */
export const FIELDS_IN_ORDER: readonly WebhookField[] = [
  'name',
  'description',
  'eventTypes',
  'jobIds',
  'clientUrl',
  'active',
];

/** What can be told before the server is asked. */
export function checkWebhook(values: WebhookValues): FieldProblems {
  const name = values.name.trim();
  const problems: FieldProblems = {};
  if (name === '') problems.name = 'Give the webhook a name.';
  else if (name.length > LIMITS.name) problems.name = tooLong(LIMITS.name);
  if (values.description.length > LIMITS.description) problems.description = tooLong(LIMITS.description);
  if (values.eventTypes.length === 0) problems.eventTypes = 'Choose at least one event.';
  if (values.jobIds.length > LIMITS.jobIds)
    problems.jobIds = `Choose at most ${LIMITS.jobIds.toLocaleString()} jobs, or none for all jobs.`;
  const urlProblem = checkUrl(values.clientUrl.trim());
  if (urlProblem !== null) problems.clientUrl = urlProblem;
  return problems;
}

function checkUrl(text: string): string | null {
  if (text === '') return 'Enter the address that deliveries are sent to.';
  if (text.length > LIMITS.clientUrl) return tooLong(LIMITS.clientUrl);
  if (!/^https?:\/\//i.test(text)) return 'Enter a whole address that begins with https:// or http://.';
  return URL.canParse(text) ? null : 'This is not a valid address.';
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
  active: 'active',
};

const LABELS: Readonly<Record<WebhookField, string>> = {
  name: 'The name',
  description: 'The description',
  eventTypes: 'The events',
  jobIds: 'The jobs',
  clientUrl: 'The endpoint',
  active: 'Active',
};

/** The server's problems by field of the form. `event_types.0` is told beside the events. */
export function problemsOfServer(problems: Readonly<Record<string, string>>): FieldProblems {
  const told: FieldProblems = {};
  for (const [path, message] of Object.entries(problems)) {
    const field = FIELD_OF_API[path.split('.')[0] ?? ''];
    if (field === undefined || told[field] !== undefined) continue;
    told[field] = `${LABELS[field]} ${message}${message.endsWith('.') ? '' : '.'}`;
  }
  return told;
}
