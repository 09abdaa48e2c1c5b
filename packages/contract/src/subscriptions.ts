import Joi from 'joi';
import { headersSchema, signatureHeaderSchema } from './delivery-headers.ts';
import { flagSchema, formatOptionsSchema, labelsSchema, rateLimitSchema } from './delivery-options.ts';
import { EVENT_TYPES, type EventType } from './event-types.ts';
import {
  configuredText,
  integerIdFromText,
  isIntegerId,
  nameText,
  type Problem,
  toProblems,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
import type { EventFilters } from './filters.ts';
import { filtersSchema } from './filters-schema.ts';
import { FORMAT_NAMES, FORMATS, formatByName } from './formats/registry.ts';
import { HMAC_SECRET_PATTERN } from './signing.ts';

/** Event type of a test that names none. */
export const DEFAULT_TEST_EVENT_TYPE: EventType = 'job.run.completed';

/** Limits of a subscription's fields (docs/contract.md#subscriptions). */
export const SUBSCRIPTION_LIMITS = {
  nameCharactersMax: 255,
  descriptionCharactersMax: 2_000,
  clientUrlCharactersMax: 2_048,
  jobIdsMax: 1_000,
} as const;

/** Types of key pairs that may sign in addition to the secret. */
export const SIGNATURE_KEY_TYPES = ['ed25519'] as const;
export type SignatureKeyType = (typeof SIGNATURE_KEY_TYPES)[number];

/** The fields of a create or an update (docs/contract.md#subscriptions), with defaults filled in. */
export interface SubscriptionFields {
  name: string;
  description: string;
  event_types: EventType[];
  /** Empty means all jobs of the account. The order is preserved and duplicates are dropped. */
  job_ids: number[];
  /** Empty for a webhook that has only a feed. */
  client_url: string;
  /** Undefined if omitted: true on create; on update the stored value, or true if a new `client_url` reactivates it. */
  active: boolean | undefined;
  /** Undefined if the request omitted it: the stored value is unchanged. Null: `Authorization`. */
  signature_header?: string | null | undefined;
  /**
   * Undefined if the request omitted them: the stored ones are unchanged. `***` stands for the stored value of a
   * header.
   */
  headers?: Record<string, string> | null | undefined;
  /** Undefined if the request omitted it: the key pair is unchanged. Null: none. */
  signature_key?: SignatureKeyType | null | undefined;
  /** Undefined, here and below: the stored value is unchanged. Null: none; the default format is null. */
  format?: string | null | undefined;
  /** `***` stands for the stored value of an option. */
  format_options?: Record<string, string> | null | undefined;
  filters?: EventFilters | null | undefined;
  ordered?: boolean | null | undefined;
  /** Requests per second. */
  rate_limit?: number | null | undefined;
  labels?: Record<string, string> | null | undefined;
  deactivate_on_410?: boolean | null | undefined;
}

/** Completes "client_url …" with the problem, or returns null. Implemented by packages/egress, which also sends. */
export type UrlProblem = (url: string) => string | null;

export type SubscriptionParsing =
  | { fields: SubscriptionFields; problems?: never }
  | { fields?: never; problems: Problem[] };

/** Parses the body of a create or an update; unknown fields are ignored. The caller must check that the jobs exist. */
export function parseSubscription(body: unknown, urlProblem: UrlProblem): SubscriptionParsing {
  const { value, error } = schema
    .required()
    .validate(body, { ...VALIDATION_OPTIONS, context: { urlProblem } });
  return error ? { problems: toProblems(error, 'body') } : { fields: value };
}

/** Message of a test (docs/contract.md#test-endpoint), with defaults filled in. */
export interface TestMessageFields {
  /** Type of the sample. */
  event_type: EventType;
  /** An event of the account to send instead of a sample; null or undefined for the sample. */
  event_id?: string | null | undefined;
  /** Undefined for a stored subscription: its format. Null: the payload of the contract. */
  format?: string | null | undefined;
  /** `***` stands for the stored value of an option. */
  format_options?: Record<string, string> | null | undefined;
}

/** The body of a test of an endpoint that is not stored. */
export interface EndpointTestFields extends TestMessageFields {
  client_url: string;
  /** Value of `webhookName` in the sample. */
  name: string;
  /** Undefined if the request omitted it: a secret is generated for this call. */
  hmac_secret?: string | undefined;
  signature_header?: string | null | undefined;
  headers?: Record<string, string> | null | undefined;
}

export type EndpointTestParsing =
  | { fields: EndpointTestFields; problems?: never }
  | { fields?: never; problems: Problem[] };

/** Validates by the rules for the fields of a subscription; unknown fields are ignored. */
export function parseEndpointTest(body: unknown, urlProblem: UrlProblem): EndpointTestParsing {
  const { value, error } = endpointTestSchema
    .required()
    .validate(body, { ...VALIDATION_OPTIONS, context: { urlProblem } });
  return error ? { problems: toProblems(error, 'body') } : { fields: value };
}

/** Parses the body of a test of a stored subscription, which may be absent; unknown fields are ignored. */
export function parseStoredTest(
  body: unknown,
): { fields: TestMessageFields; problems?: never } | { fields?: never; problems: Problem[] } {
  const { value, error } = storedTestSchema.validate(body ?? {}, VALIDATION_OPTIONS);
  return error ? { problems: toProblems(error, 'body') } : { fields: value };
}

const nameSchema = nameText(SUBSCRIPTION_LIMITS.nameCharactersMax);

const clientUrlSchema = configuredText(SUBSCRIPTION_LIMITS.clientUrlCharactersMax)
  .required()
  .custom((url: string, helpers) => {
    const problem = (helpers.prefs.context as { urlProblem: UrlProblem }).urlProblem(url);
    return problem === null ? url : helpers.message({ custom: `{{#label}} ${problem}` });
  });

const schema = Joi.object<SubscriptionFields>({
  name: nameSchema.required(),
  description: configuredText(SUBSCRIPTION_LIMITS.descriptionCharactersMax)
    .allow('', null)
    .empty(null)
    .default(''),
  event_types: Joi.array()
    .items(Joi.string().valid(...EVENT_TYPES))
    .min(1)
    .unique()
    .required()
    .messages({
      'array.min': '{{#label}} must name at least one event type',
      'array.unique': '{{#label}} repeats an event type',
    }),
  job_ids: Joi.any().custom(readJobIds).default([]),
  client_url: clientUrlSchema.allow(''),
  active: Joi.boolean(),
  signature_header: signatureHeaderSchema,
  headers: headersSchema,
  signature_key: Joi.any().custom(readSignatureKey),
  format: Joi.any().custom(readFormat),
  format_options: formatOptionsSchema,
  filters: filtersSchema,
  ordered: flagSchema,
  rate_limit: rateLimitSchema,
  labels: labelsSchema,
  deactivate_on_410: flagSchema,
});

const testMessage = {
  event_type: Joi.string()
    .valid(...EVENT_TYPES)
    .default(DEFAULT_TEST_EVENT_TYPE),
  event_id: Joi.string().allow(null),
  format: Joi.any().custom(readFormat),
  format_options: formatOptionsSchema,
};

const storedTestSchema = Joi.object<TestMessageFields>(testMessage);

const endpointTestSchema = Joi.object<EndpointTestFields>({
  client_url: clientUrlSchema,
  ...testMessage,
  name: nameSchema.allow('', null).empty(['', null]).default('Not saved yet'),
  hmac_secret: Joi.string()
    .pattern(HMAC_SECRET_PATTERN)
    .messages({
      'string.pattern.base':
        '{{#label}} must be a secret as webhooks have them: whsec_ and 44 characters of base64',
    })
    .allow(null)
    .empty(null),
  signature_header: signatureHeaderSchema,
  headers: headersSchema,
});

/** Accepts the object of responses as well, so that a PUT of the result of a GET changes nothing. */
function readSignatureKey(value: unknown, helpers: Joi.CustomHelpers): unknown {
  if (value === null) return null;
  const requested = typeof value === 'object' ? (value as { type?: unknown }).type : value;
  const type = SIGNATURE_KEY_TYPES.find((one) => one === requested);
  return type ?? helpers.message({ custom: `{{#label}} must be ${SIGNATURE_KEY_TYPES.join(', ')} or null` });
}

/** Yields null for the default format. */
function readFormat(value: unknown, helpers: Joi.CustomHelpers): unknown {
  if (value === null || value === FORMATS[0].name) return null;
  if (typeof value === 'string' && formatByName(value) !== null) return value;
  return helpers.message({ custom: `{{#label}} must be ${FORMAT_NAMES.join(', ')} or null` });
}

/** Accepts an array of integers and digit strings, a single one of either, or null for all jobs. */
function readJobIds(value: unknown, helpers: Joi.CustomHelpers): unknown {
  const items = value === null ? [] : Array.isArray(value) ? value : [value];
  const ids = items.map((item) =>
    typeof item === 'string' ? integerIdFromText(item) : isIntegerId(item) ? item : null,
  );
  if (ids.includes(null)) {
    return helpers.message({
      custom: '{{#label}} must be integers that are ids of jobs, or empty for all jobs',
    });
  }
  const unique = [...new Set(ids)];
  if (unique.length > SUBSCRIPTION_LIMITS.jobIdsMax) {
    return helpers.message({
      custom: `{{#label}} must not name more than ${SUBSCRIPTION_LIMITS.jobIdsMax} jobs`,
    });
  }
  return unique;
}

export const PLANS = ['free', 'developer', 'team', 'enterprise'] as const;
export const DEPLOYMENTS = ['multi_tenant', 'single_tenant_public_cloud', 'single_tenant_private'] as const;

export type Plan = (typeof PLANS)[number];
export type Deployment = (typeof DEPLOYMENTS)[number];

/**
 * Returns the reason why an account cannot use webhooks, or null if it can: they require the Team or Enterprise plan on
 * a multi-tenant or single-tenant public cloud deployment (docs/contract.md#subscriptions).
 */
export function webhooksUnavailableReason(account: {
  plan: Plan;
  deployment: Deployment;
}): 'plan' | 'deployment' | null {
  if (account.plan !== 'team' && account.plan !== 'enterprise') return 'plan';
  if (account.deployment === 'single_tenant_private') return 'deployment';
  return null;
}
