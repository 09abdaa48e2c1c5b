import { RUN_STEP_LIMITS } from '@runhook/contract';

/** A schema in JSON Schema 2020-12, the dialect of OpenAPI 3.1: the keywords that the document uses. */
export interface Schema {
  $ref?: string;
  type?: SchemaType | SchemaType[];
  description?: string;
  const?: string | number | boolean | null;
  enum?: readonly (string | number)[];
  default?: unknown;
  examples?: readonly unknown[];
  format?: 'date-time' | 'email' | 'uri';
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  properties?: Record<string, Schema>;
  required?: string[];
  maxProperties?: number;
  propertyNames?: Schema;
  additionalProperties?: Schema | boolean;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  contentMediaType?: string;
  contentSchema?: Schema;
}

export type SchemaType = 'array' | 'boolean' | 'integer' | 'null' | 'number' | 'object' | 'string';

export interface Reference {
  $ref: string;
}

export interface Parameter {
  name: string;
  in: 'cookie' | 'header' | 'path' | 'query';
  description: string;
  required?: boolean;
  schema: Schema;
  example?: unknown;
}

export interface Header {
  description: string;
  required: boolean;
  schema: Schema;
}

export interface MediaType {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, { summary: string; value: unknown }>;
}

export interface Response {
  description: string;
  headers?: Record<string, Header>;
  content?: {
    'application/json'?: MediaType;
    'text/event-stream'?: MediaType;
    'text/html'?: MediaType;
    'text/plain'?: MediaType;
    '*/*'?: MediaType;
  };
}

export interface RequestBody {
  description: string;
  required: boolean;
  content: {
    'application/json'?: MediaType;
    'application/x-www-form-urlencoded'?: MediaType;
    '*/*'?: MediaType;
  };
}

/** Schemes that a request needs together; a list of these means alternatives. */
export type SecurityRequirement = Record<string, string[]>;

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: (Parameter | Reference)[];
  requestBody?: RequestBody;
  responses: Record<string, Response | Reference>;
  /** Overrides the document's requirements; `[]` means no credential. */
  security?: SecurityRequirement[];
  /** Requests that result from the operation, by name and by the expression for their URL. */
  callbacks?: Record<string, Record<string, PathItem>>;
}

export type OperationMethod = 'get' | 'post' | 'put' | 'delete';

export type PathItem = {
  parameters?: (Parameter | Reference)[];
} & { [Method in OperationMethod]?: Operation };

/** Operations by path, with parameters in braces. Linters reject a trailing slash, which the service accepts. */
export type Paths = Record<`/api/${string}` | `/.well-known/${string}`, PathItem>;

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: {
    title: string;
    version: string;
    summary: string;
    description: string;
    contact: { name: string };
    license: { name: string; identifier: string };
  };
  servers: { url: string; description: string }[];
  security: SecurityRequirement[];
  tags: { name: string; description: string }[];
  paths: Paths;
  webhooks: Record<string, PathItem>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, Response>;
    securitySchemes: Record<string, SecurityScheme>;
  };
}

export type SecurityScheme =
  | { type: 'apiKey'; in: 'header' | 'cookie'; name: string; description: string }
  | { type: 'http'; scheme: 'bearer'; description: string };

/** A public id: its prefix and a KSUID, 27 base62 characters. */
export function prefixedId(prefix: 'act_' | 'wdl_' | 'wev_' | 'wrc_' | 'wsu_', description: string): Schema {
  return { type: 'string', pattern: `^${prefix}${KSUID}$`, description };
}

/** 160 bits in base 62, of which the time comes first: a lower-case first letter is a time after the year 2147. */
export const KSUID = '[0-9A-Z][0-9A-Za-z]{26}';

const NUMBER_TEXT = '^[1-9][0-9]{0,15}$';

/** A numeric id as a string. */
export function idText(description: string, example: string): Schema {
  return { type: 'string', pattern: NUMBER_TEXT, description, examples: [example] };
}

/** A numeric id as a number that is exact in JSON. */
export function integerId(description: string, example: number): Schema {
  return { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description, examples: [example] };
}

/** Index of a step of a run. */
export function stepIndex(): Schema {
  const { indexMax: maximum } = RUN_STEP_LIMITS;
  return {
    type: 'integer',
    minimum: 0,
    maximum,
    description: 'Position of the step in its run.',
    examples: [1],
  };
}

export function count(description: string): Schema {
  return { type: 'integer', minimum: 0, description };
}

/** Microseconds since the epoch, as digits in a string (docs/contract.md#times). */
export function microsTime(description: string): Schema {
  return {
    type: 'string',
    pattern: '^[0-9]{1,18}$',
    description: `${description} Microseconds since the epoch, as digits.`,
    examples: ['1795168800123456'],
  };
}

/** ISO 8601 UTC in seconds with `Z`. */
export function secondsTime(description: string): Schema {
  return {
    type: 'string',
    format: 'date-time',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$',
    description: `${description} ISO 8601 UTC, in seconds.`,
    examples: ['2026-11-20T10:00:00Z'],
  };
}

/** ISO 8601 UTC in microseconds with `Z`. */
export function microsecondsTime(description: string): Schema {
  return {
    type: 'string',
    format: 'date-time',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$',
    description: `${description} ISO 8601 UTC, in microseconds.`,
    examples: ['2026-11-20T10:00:00.123456Z'],
  };
}

/** A time of a report: {@link microsecondsTime}, or with a smaller or larger fraction. */
export function reportedUtc(description: string): Schema {
  return {
    type: 'string',
    format: 'date-time',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|\\+00:00)$',
    description,
    examples: ['2026-11-20T10:00:00.123456Z'],
  };
}

/** A duration. */
export function durationOf(description: string): Schema {
  return { type: 'string', pattern: '^\\d{2,}:\\d{2}:\\d{2}$', description, examples: ['00:01:34'] };
}

/** An HTTP status as a string; "0" means none. */
export function httpStatusText(description: string): Schema {
  return { type: 'string', pattern: '^(0|[1-9][0-9]{2})$', description, examples: ['200'] };
}

export function text(description: string, limits: { maxLength?: number; minLength?: number } = {}): Schema {
  return { type: 'string', ...limits, description };
}

/** A required name in a request, not blank. */
export function requiredName(maxLength: number, description: string): Schema {
  return { ...requiredText(maxLength, description), pattern: NAME };
}

/** A required configured text. The pattern expresses docs/contract.md#text, except for noncharacters above U+FFFF. */
export function requiredText(maxLength: number, description: string): Schema {
  return { type: 'string', minLength: 1, maxLength, pattern: WELL_FORMED, description };
}

/** A configured text for which null means absent. */
export function optionalText(maxLength: number, description: string): Schema {
  return { type: ['string', 'null'], maxLength, pattern: WELL_FORMED, description };
}

/** A required text that a job runner reports: invalid characters become U+FFFD. */
export function requiredReportedText(maxLength: number, description: string): Schema {
  return { type: 'string', minLength: 1, maxLength, description };
}

/** A reported text for which null means absent. */
export function optionalReportedText(maxLength: number, description: string): Schema {
  return { type: ['string', 'null'], maxLength, description };
}

/**
 * Patterns of configured text. JSON Schema lets a validator match code points or UTF-16 units: with code points the
 * first alternative of a character matches a surrogate pair, with units the second one.
 */
const INVALID_UNITS = '\\u0000\\uD800-\\uDFFF\\uFDD0-\\uFDEF\\uFFFE\\uFFFF';
const SURROGATE_PAIR = '[\\uD800-\\uDBFF][\\uDC00-\\uDFFF]';
const CHARACTER = `(?:[^${INVALID_UNITS}]|${SURROGATE_PAIR})`;
const WELL_FORMED = `^${CHARACTER}*$`;
const NOT_BLANK = `${CHARACTER}*(?:[^\\s${INVALID_UNITS}]|${SURROGATE_PAIR})${CHARACTER}*`;
const NAME = `^${NOT_BLANK}$`;
/** A name, or the empty text. */
export const OPTIONAL_NAME_PATTERN = `^(?:${NOT_BLANK})?$`;

/** Returns the schema with null as an additional value. */
export function nullable(schema: Schema): Schema {
  const { type, ...rest } = schema;
  if (type === undefined || Array.isArray(type))
    throw new TypeError('only a schema of one type can be widened');
  return { type: [type, 'null'], ...rest };
}

type OptionalKeys<T> = {
  [Key in keyof T]-?: Partial<Pick<T, Key>> extends Pick<T, Key> ? Key : never;
}[keyof T];

/** A schema for every field of `T`: a new field of a response must be described before it compiles. */
export type PropertiesOf<T> = { [Key in keyof T]-?: Schema };

/**
 * Returns the schema of an object in a response. It permits no other fields, so that a test that validates a response
 * fails for an unknown or missing field. @param optional fields that may be absent; null is not absent
 */
export function responseObject<T extends object>(
  description: string,
  properties: PropertiesOf<T>,
  optional: readonly OptionalKeys<T>[] = [],
): Schema {
  const required = (Object.keys(properties) as (keyof T)[]).filter(
    (key) => !optional.includes(key as OptionalKeys<T>),
  ) as string[];
  return {
    type: 'object',
    description,
    properties: { ...properties },
    required,
    additionalProperties: false,
  };
}

/** Returns the schema of an object in a request, which may have further fields: they are ignored. */
export function requestObject<T extends object>(
  description: string,
  properties: PropertiesOf<T>,
  required: readonly (keyof T & string)[],
): Schema {
  return { type: 'object', description, properties: { ...properties }, required: [...required] };
}

/** Returns a reference to a schema of `components`. @param description replaces that of the schema */
export function schemaRef(name: string, description?: string): Schema {
  const $ref = `#/components/schemas/${name}`;
  return description === undefined ? { $ref } : { $ref, description };
}

const DAY = '(?:19[7-9][0-9]|[2-9][0-9]{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])';
const TIME = 'T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?:\\.[0-9]{1,9})?';
const ZONE = '(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])';

/**
 * A timestamp in a request, in the formats of `microsFromText`. The pattern cannot express the length of a month, or
 * that a time with a zone is not before 1970.
 */
export const TIMESTAMP: Schema = {
  type: 'string',
  pattern: `^(?:[0-9]{1,17}|[01][0-9]{17}|2[0-4][0-9]{16}|${DAY}(?:${TIME}${ZONE})?)$`,
  examples: ['2026-11-20T10:00:00Z'],
};

export const TIMESTAMP_FORMATS =
  'ISO 8601 with a time zone, a date, which is its beginning in UTC, or microseconds since the epoch as digits.';
