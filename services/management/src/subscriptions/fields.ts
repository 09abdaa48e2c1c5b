/**
 * The fields of a subscription in all their forms: columns, response of the API, OpenAPI document with examples. New
 * fields are added here; their validation is in `packages/contract/src/subscriptions.ts`.
 */
import {
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  HEADER_LIMITS,
  HEADER_NAME,
  MASK,
  SIGNATURE_KEY_TYPES,
  SUBSCRIPTION_LIMITS,
  type SubscriptionFields,
} from '@runhook/contract';
import type { Prisma } from '@runhook/database/prisma';
import { publicErrorCode } from '@runhook/egress';
import {
  httpStatusText,
  idText,
  integerId,
  microsTime,
  optionalText,
  type PropertiesOf,
  prefixedId,
  requestObject,
  requiredName,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { CUSTOM_HEADERS } from './custom-headers.ts';
import { OPTION_COLUMNS, type OptionsView, optionsView } from './delivery-options.ts';
import {
  OPTION_REQUEST_PROPERTIES,
  OPTION_RESPONSE_PROPERTIES,
  OPTIONS,
} from './delivery-options-openapi.ts';
import { type Health, healthOf } from './health.ts';
import { rotationPeriod, type SecretRotation } from './rotation.ts';
import { PUBLIC_KEY_COLUMNS, type SignatureKeyView, signatureKeyView } from './signature-key.ts';

/** Columns of a subscription in responses. */
export const SUBSCRIPTION_COLUMNS = {
  id: true,
  accountId: true,
  name: true,
  description: true,
  jobIds: true,
  eventTypes: true,
  clientUrl: true,
  active: true,
  createdAtMicros: true,
  updatedAtMicros: true,
  dispatchedAtMicros: true,
  httpStatusCode: true,
  errorCode: true,
  deactivateReason: true,
  signatureHeader: true,
  headerNames: true,
  failingSinceMicros: true,
  consecutiveFailures: true,
  lastSuccessAtMicros: true,
  ...PUBLIC_KEY_COLUMNS,
  ...OPTION_COLUMNS,
} satisfies Prisma.SubscriptionSelect;

export type SubscriptionRow = Prisma.SubscriptionGetPayload<{ select: typeof SUBSCRIPTION_COLUMNS }>;

/** Converts the fields of a request to columns; `active` is set by the statements. */
export function columnsOf(fields: SubscriptionFields) {
  return {
    name: fields.name,
    description: fields.description,
    eventTypes: fields.event_types,
    jobIds: fields.job_ids.map(BigInt),
    clientUrl: fields.client_url,
  };
}

/** A subscription in responses (docs/contract.md#subscriptions); times are microseconds since the epoch, as digits. */
export interface SubscriptionView extends OptionsView {
  id: string;
  account_identifier: string;
  account_id: string;
  name: string;
  description: string;
  job_ids: string[];
  event_types: string[];
  client_url: string;
  active: boolean;
  created_at: string;
  updated_at: string;
  /** Start of the latest attempt; absent before the first. */
  dispatched_at?: string;
  /** Status of the latest attempt; "0" before the first. */
  http_status_code: string;
  /** Error of the latest attempt, or null; absent unless the request includes it. */
  error_code?: string | null;
  /** Absent unless the service deactivated it. */
  deactivate_reason?: string;
  /** Absent if it is `Authorization`. */
  signature_header?: string;
  /** Absent if there are none. Every value is masked. */
  headers?: Record<string, string>;
  /** Absent unless a rotation of its secret is in progress. */
  secret_rotation?: SecretRotation;
  /** Absent without a key pair. */
  signature_key?: SignatureKeyView;
  /** Absent unless the request includes it. */
  health?: Health;
  /** Only in the responses to a create and to a rotation. */
  hmac_secret?: string;
}

/** Additional fields of a response if the request names them in `include`, so that other clients see no change. */
export const INCLUDABLE_FIELDS = ['error_code', 'health'] as const;

export type IncludedFields = ReadonlySet<(typeof INCLUDABLE_FIELDS)[number]>;

const NO_INCLUDED_FIELDS: IncludedFields = new Set();

/** @param account account of the subscription */
export function subscriptionView(
  row: SubscriptionRow,
  account: { identifier: string },
  included: IncludedFields = NO_INCLUDED_FIELDS,
): SubscriptionView {
  const rotation = row.nextSignaturePublicKey === null ? rotationPeriod(row) : null;
  return {
    id: row.id,
    account_identifier: account.identifier,
    account_id: String(row.accountId),
    name: row.name,
    description: row.description,
    job_ids: row.jobIds.map(String),
    event_types: row.eventTypes,
    client_url: row.clientUrl,
    active: row.active,
    created_at: String(row.createdAtMicros),
    updated_at: String(row.updatedAtMicros),
    ...(row.dispatchedAtMicros === null ? {} : { dispatched_at: String(row.dispatchedAtMicros) }),
    http_status_code: String(row.httpStatusCode),
    ...(included.has('error_code') ? { error_code: row.errorCode && publicErrorCode(row.errorCode) } : {}),
    ...(row.deactivateReason === null ? {} : { deactivate_reason: row.deactivateReason }),
    ...(row.signatureHeader === null ? {} : { signature_header: row.signatureHeader }),
    ...(row.headerNames.length === 0
      ? {}
      : { headers: Object.fromEntries(row.headerNames.map((name) => [name, MASK])) }),
    ...(rotation === null ? {} : { secret_rotation: rotation }),
    ...signatureKeyView(row),
    ...optionsView(row),
    ...(included.has('health') ? { health: healthOf(row) } : {}),
  };
}

// The examples of all features belong together: a nightly job of account 1 fails, and a webhook notifies the pager.

export const SUBSCRIPTION_FIELDS_EXAMPLE = {
  name: 'Runs to the pager',
  description: 'Notifies the person on call',
  event_types: ['job.run.completed', 'job.run.errored'],
  job_ids: [12],
  client_url: 'https://receiver.example.com/hooks',
  active: true,
};

export const NEW_SUBSCRIPTION: SubscriptionView = {
  id: 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn',
  account_identifier: 'act_3MMmRJEV9dZkhAlajvBokYDUOPh',
  account_id: '1',
  name: 'Runs to the pager',
  description: 'Notifies the person on call',
  job_ids: ['12'],
  event_types: ['job.run.completed', 'job.run.errored'],
  client_url: 'https://receiver.example.com/hooks',
  active: true,
  created_at: '1795168700000000',
  updated_at: '1795168700000000',
  http_status_code: '0',
};

export const EVENT_TYPE: Schema = {
  type: 'string',
  enum: EVENT_TYPES,
  description: EVENT_TYPES.map((type) => `\`${type}\`: ${EVENT_TYPE_TABLE[type].fires}`).join(' '),
};

export type StoredView = Omit<SubscriptionView, 'hmac_secret'>;

/** Properties of a subscription in responses, as OpenAPI schemas (docs/contract.md#subscriptions). */
export const RESPONSE_PROPERTIES: PropertiesOf<StoredView> = {
  id: prefixedId('wsu_', 'Id of the subscription, unique across all regions and deployments.'),
  account_identifier: prefixedId('act_', 'Globally unique identifier of the account.'),
  account_id: idText('The number of the account.', '1'),
  name: text('Name of the webhook.'),
  description: text('The purpose of the webhook; may be empty.'),
  job_ids: {
    type: 'array',
    items: idText('Id of a job.', '12'),
    description: 'Only events of these jobs, in the order of the request. Empty: all jobs of the account.',
  },
  event_types: {
    type: 'array',
    items: EVENT_TYPE,
    minItems: 1,
    uniqueItems: true,
    description: 'The event types, in the order of the request.',
  },
  client_url: text('URL of the endpoint; empty for a webhook that has only a feed.'),
  active: { type: 'boolean', description: 'Whether events are delivered.' },
  created_at: microsTime('When it was created.'),
  updated_at: microsTime('When it was last changed by a request.'),
  dispatched_at: microsTime(
    'Start of the latest attempt, whatever its result. Absent before the first attempt.',
  ),
  http_status_code: httpStatusText(
    'Status of the latest attempt: that of the response, or without a response "504" (timeout) or "502"; `error_code` has the cause. "0" before the first attempt.',
  ),
  error_code: {
    type: ['string', 'null'],
    description:
      'Error code of the latest attempt; `unsuccessful_status` if the endpoint responded. Null if it did not fail, and before the first attempt. Only if `include` requests it.',
  },
  deactivate_reason: text('Why the service deactivated it. Absent otherwise.'),
  signature_header: text('The header with the signature of the body. Absent if it is `Authorization`.'),
  headers: {
    type: 'object',
    additionalProperties: { type: 'string', const: MASK },
    description: `Names of additional headers; their values are not shown. Absent if there are none.`,
  },
  secret_rotation: schemaRef('SecretRotation'),
  signature_key: schemaRef('SignatureKey'),
  ...OPTION_RESPONSE_PROPERTIES,
  health: schemaRef('Health'),
};

export const OPTIONAL_RESPONSE_PROPERTIES = [
  'dispatched_at',
  'error_code',
  'deactivate_reason',
  'signature_header',
  'headers',
  'secret_rotation',
  'signature_key',
  ...OPTIONS,
  'health',
] as const;

const { nameCharactersMax, descriptionCharactersMax, clientUrlCharactersMax, jobIdsMax } =
  SUBSCRIPTION_LIMITS;

/** Request schema of the OpenAPI document. */
export const REQUEST_FIELDS = requestObject<SubscriptionFields>(
  'The fields of a webhook. An update replaces all of them: an omitted field gets its default, but those of `active` and of all fields after it stay unchanged.',
  {
    name: requiredName(nameCharactersMax, 'Name of the webhook.'),
    description: optionalText(descriptionCharactersMax, 'The purpose of the webhook. Default: "".'),
    event_types: {
      type: 'array',
      items: EVENT_TYPE,
      minItems: 1,
      uniqueItems: true,
      description: 'The event types, at least one, without repeats.',
    },
    job_ids: {
      type: 'array',
      items: integerId('Id of a job of the account.', 12),
      description: `Only events of these jobs. Default, and if empty: all jobs of the account. At most ${jobIdsMax} different ids; repeats are dropped. Ids that are not jobs of the account are a 400 that lists them. Digits in a string, as in responses, a single id, and null, which equals an empty list, are accepted as well.`,
    },
    client_url: {
      ...text(
        'URL of the endpoint: an absolute http or https URL without credentials, or empty for a webhook that has only a feed. An address in the network of the service is rejected.',
        { maxLength: clientUrlCharactersMax },
      ),
      examples: ['https://receiver.example.com/hooks'],
    },
    active: {
      type: 'boolean',
      description: 'Whether events are delivered. Default: true on a create, unchanged on an update.',
    },
    signature_header: {
      type: ['string', 'null'],
      maxLength: HEADER_LIMITS.nameCharactersMax,
      pattern: HEADER_NAME.source,
      description:
        'The header for the signature of the body, for gateways that reject or strip `Authorization`; null for `Authorization`. Default: unchanged on an update.',
      examples: ['X-Runhook-Signature'],
    },
    headers: {
      ...CUSTOM_HEADERS,
      description: `Up to ${HEADER_LIMITS.headersMax} additional headers by name, for gateways that require them; ${HEADER_LIMITS.totalBytesMax} bytes in total, with 4 for the separators of each. Values are stored encrypted and never shown; \`${MASK}\` keeps the stored value of a name. Default: unchanged on an update; null or empty: none. If \`client_url\` changes to another server, all values must be supplied again.`,
      examples: [{ 'X-Gateway-Key': 'a value' }],
    },
    signature_key: {
      anyOf: [{ type: 'string', enum: SIGNATURE_KEY_TYPES }, schemaRef('SignatureKey'), { type: 'null' }],
      description:
        'Adds an Ed25519 signature, `v1a` in `webhook-signature`, by a key pair of the webhook: receivers verify it with the public key of the response. The object of a response is accepted and means its `type`. Default: unchanged on an update; null: none.',
      examples: ['ed25519'],
    },
    ...OPTION_REQUEST_PROPERTIES,
  },
  ['name', 'event_types', 'client_url'],
);
