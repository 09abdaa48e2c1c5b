import type { Schema } from './openapi-types.ts';

/** A public id: its prefix and a KSUID, 27 base62 characters. */
export function prefixedId(prefix: 'act_' | 'wdl_' | 'wev_' | 'wrc_' | 'wsu_', description: string): Schema {
  return { type: 'string', pattern: `^${prefix}[0-9A-Za-z]{27}$`, description };
}

const NUMBER_TEXT = '^[1-9][0-9]{0,15}$';

/** A numeric id that is carried as a string. */
export function idText(description: string, example: string): Schema {
  return { type: 'string', pattern: NUMBER_TEXT, description, examples: [example] };
}

/** A numeric id that is a number, exact in JSON. */
export function integerId(description: string, example: number): Schema {
  return { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description, examples: [example] };
}

export function count(description: string): Schema {
  return { type: 'integer', minimum: 0, description };
}

/** Microseconds since the epoch, as digits in a string (DESIGN, section 4, "Times"). */
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

/** An HTTP status carried as a string; "0" is none at all. */
export function httpStatusText(description: string): Schema {
  return { type: 'string', pattern: '^(0|[1-9][0-9]{2})$', description, examples: ['200'] };
}

export function text(description: string, limits: { maxLength?: number; minLength?: number } = {}): Schema {
  return { type: 'string', ...limits, description };
}

/** A required text of a request: not empty, and without NUL, which PostgreSQL cannot keep. */
export function requiredText(maxLength: number, description: string): Schema {
  return { type: 'string', minLength: 1, maxLength, pattern: WITHOUT_NUL, description };
}

/** A text of a request for which null is the same as absence. */
export function optionalText(maxLength: number, description: string): Schema {
  return { type: ['string', 'null'], maxLength, pattern: WITHOUT_NUL, description };
}

const WITHOUT_NUL = '^[^\\u0000]*$';

/** The same schema, which may be null as well. */
export function orNull(schema: Schema): Schema {
  const { type, ...rest } = schema;
  if (type === undefined || Array.isArray(type))
    throw new TypeError('only a schema of one type can be widened');
  return { type: [type, 'null'], ...rest };
}
