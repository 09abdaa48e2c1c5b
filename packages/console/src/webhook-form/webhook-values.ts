import type { EventType } from '@runhook/contract';
import { formatByName } from '@runhook/contract/formats';
import type { EndpointTestFields, FormatName, Subscription, SubscriptionFields } from '../api/types.ts';

export interface WebhookValues {
  name: string;
  description: string;
  eventTypes: EventType[];
  /** An empty array means all jobs. */
  jobIds: string[];
  clientUrl: string;
  /** Whether the webhook has no endpoint: its consumers read its feed. */
  isFeedOnly: boolean;
  format: FormatName;
  /** Values by name; an empty string keeps the stored value, if `storedFormatOptions` names it. */
  formatOptions: Record<string, string>;
  storedFormatOptions: readonly string[];
  /** Codes of run statuses, ids of environments and projects. An empty array means all. */
  runStatuses: string[];
  environmentIds: string[];
  projectIds: string[];
  ordered: boolean;
  /** Requests per second, as typed; an empty string means no limit. */
  rateLimit: string;
  deactivateOn410: boolean;
  labels: Label[];
  /** An empty string means `Authorization`, or the header of the format. */
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

export interface Label {
  /** React key of the row of the label. */
  key: string;
  name: string;
  value: string;
}

/** Represents a stored value in requests and responses of the API. */
const MASK = '***';

export const NEW_WEBHOOK: WebhookValues = {
  name: '',
  description: '',
  eventTypes: [],
  jobIds: [],
  clientUrl: '',
  isFeedOnly: false,
  format: 'runhook',
  formatOptions: {},
  storedFormatOptions: [],
  runStatuses: [],
  environmentIds: [],
  projectIds: [],
  ordered: false,
  rateLimit: '',
  deactivateOn410: false,
  labels: [],
  signatureHeader: '',
  headers: [],
  signatureKey: false,
  active: true,
};

export function toFormValues(subscription: Subscription): WebhookValues {
  const { filters } = subscription;
  return {
    name: subscription.name,
    description: subscription.description,
    eventTypes: subscription.event_types,
    jobIds: subscription.job_ids,
    clientUrl: subscription.client_url,
    isFeedOnly: subscription.client_url === '',
    format: subscription.format ?? 'runhook',
    formatOptions: {},
    storedFormatOptions: Object.keys(subscription.format_options ?? {}),
    runStatuses: filters?.run_statuses ?? [],
    environmentIds: filters?.environment_ids ?? [],
    projectIds: filters?.project_ids ?? [],
    ordered: subscription.ordered ?? false,
    rateLimit: String(subscription.rate_limit ?? ''),
    deactivateOn410: subscription.deactivate_on_410 ?? false,
    labels: Object.entries(subscription.labels ?? {}).map(([name, value]) => ({ key: name, name, value })),
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

/** Returns the values of a copy, without stored values, which no response contains: the user enters them again. */
export function toCopyValues(subscription: Subscription): WebhookValues {
  const values = toFormValues(subscription);
  return {
    ...values,
    name: `Copy of ${subscription.name}`,
    storedFormatOptions: [],
    headers: values.headers.map((header) => ({ ...header, isStored: false })),
  };
}

export function toApiFields(values: WebhookValues): SubscriptionFields {
  return {
    name: values.name.trim(),
    description: values.description,
    event_types: values.eventTypes,
    job_ids: values.jobIds.map(Number),
    client_url: values.isFeedOnly ? '' : values.clientUrl.trim(),
    format: values.format === 'runhook' ? null : values.format,
    format_options: toFormatOptions(values),
    filters: toFilters(values),
    ordered: values.ordered,
    rate_limit: values.rateLimit === '' ? null : Number(values.rateLimit),
    deactivate_on_410: values.deactivateOn410,
    labels:
      values.labels.length === 0
        ? null
        : Object.fromEntries(values.labels.map(({ name, value }) => [name.trim(), value])),
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

type Filters = NonNullable<SubscriptionFields['filters']>;
type RunStatusCode = NonNullable<Filters['run_statuses']>[number];

/** Returns the filters of the API; null without any. */
function toFilters(
  values: Pick<WebhookValues, 'runStatuses' | 'environmentIds' | 'projectIds'>,
): Filters | null {
  const { runStatuses, environmentIds, projectIds } = values;
  const filters = {
    ...(runStatuses.length > 0 && { run_statuses: runStatuses.map(Number) as RunStatusCode[] }),
    ...(environmentIds.length > 0 && { environment_ids: environmentIds.map(Number) }),
    ...(projectIds.length > 0 && { project_ids: projectIds.map(Number) }),
  };
  return Object.keys(filters).length === 0 ? null : filters;
}

/** Returns the options of the chosen format, with a mask for stored values; null without any. */
function toFormatOptions(values: WebhookValues): Record<string, string> | null {
  const options = optionNames(values).flatMap((name) => {
    const entered = values.formatOptions[name]?.trim() ?? '';
    return entered === '' ? [] : [[name, entered]];
  });
  const stored = listStoredFormatOptions(values).map((name) => [name, MASK]);
  return options.length + stored.length === 0 ? null : Object.fromEntries([...options, ...stored]);
}

/** Returns the options of the chosen format whose stored values are kept. */
export function listStoredFormatOptions(values: WebhookValues): string[] {
  const { formatOptions, storedFormatOptions } = values;
  return optionNames(values).filter(
    (name) => storedFormatOptions.includes(name) && (formatOptions[name]?.trim() ?? '') === '',
  );
}

function optionNames({ format }: WebhookValues): string[] {
  return Object.keys(formatByName(format)?.options ?? {});
}

/** Returns the body of a test of unsaved values. Stored values are unknown here, so they are not sent. */
export function toTestFields(values: WebhookValues, eventType: EventType): EndpointTestFields {
  const { name, client_url, signature_header = null, format, format_options } = toApiFields(values);
  const sentHeaders = values.headers.filter((header) => header.value !== '' || !header.isStored);
  const headers = Object.fromEntries(sentHeaders.map((header) => [header.name.trim(), header.value]));
  return {
    name,
    client_url,
    event_type: eventType,
    signature_header,
    headers,
    ...(format !== null && { format, format_options: withoutMasks(format_options) }),
  };
}

function withoutMasks(options: Record<string, string> | null | undefined) {
  const entered = Object.entries(options ?? {}).filter(([, value]) => value !== MASK);
  return entered.length === 0 ? null : Object.fromEntries(entered);
}

/** Whether deliveries would have the same URL and headers. The stored webhook can then be tested with its own secret. */
export function hasSameDestination(values: WebhookValues, initialValues: WebhookValues): boolean {
  const destination = (formValues: WebhookValues) => {
    const { client_url, signature_header, headers } = toApiFields(formValues);
    return JSON.stringify([client_url, signature_header, headers]);
  };
  return destination(values) === destination(initialValues);
}

/** Whether deliveries would have the same format with the same options. */
export function hasSameFormat(values: WebhookValues, initialValues: WebhookValues): boolean {
  const format = (formValues: WebhookValues) => {
    const fields = toApiFields(formValues);
    return JSON.stringify([fields.format, fields.format_options]);
  };
  return format(values) === format(initialValues);
}
