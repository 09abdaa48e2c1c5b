import Joi from 'joi';
import { hasInvalidText, INVALID_TEXT_PROBLEM, isLongerThan, wellFormedText } from './text.ts';
import { nanosecondTimestamp } from './timestamps.ts';

/** A problem of an input: `field` is its path (`data.runStartedAt`), `message` a sentence that names it. */
export interface Problem {
  field: string;
  message: string;
}

/** Options of Joi that report all problems at once, name the path without quotes, and convert no value. */
export const VALIDATION_OPTIONS = {
  abortEarly: false,
  convert: false,
  stripUnknown: true,
  errors: { label: 'path', wrap: { label: false, array: '' } },
} as const satisfies Joi.ValidationOptions;

/** Maximum number of reported problems, which bounds the size of an error response. */
const PROBLEMS_MAX = 20;

/** Converts at most {@link PROBLEMS_MAX} problems. `rootName` names the input itself in messages without a path. */
export function toProblems(error: Joi.ValidationError, rootName: string): Problem[] {
  return error.details.slice(0, PROBLEMS_MAX).map((detail) => {
    const field = detail.path.join('.') || rootName;
    return {
      field,
      message: detail.message.startsWith('value ') ? `${rootName}${detail.message.slice(5)}` : detail.message,
    };
  });
}

/**
 * Configured text: has at most `maxCharacters` code points, and is rejected if a character is invalid
 * (docs/contract.md#text).
 */
export function configuredText(maxCharacters: number): Joi.StringSchema {
  return boundedText(maxCharacters).custom((text: string, helpers) =>
    hasInvalidText(text) ? helpers.message({ custom: `{{#label}} ${INVALID_TEXT_PROBLEM}` }) : text,
  );
}

/** Text that a job runner reports: has at most `maxCharacters` code points, and is repaired instead of rejected. */
export function reportedText(maxCharacters: number): Joi.StringSchema {
  return boundedText(maxCharacters).custom(wellFormedText);
}

/** Text with a limit in code points, because `max()` of Joi counts UTF-16 units. */
export function boundedText(maxCharacters: number): Joi.StringSchema {
  return Joi.string().custom((text: string, helpers) =>
    isLongerThan(text, maxCharacters) ? helpers.error('string.max', { limit: maxCharacters }) : text,
  );
}

/** A display name: neither empty nor only spaces. */
export function nameText(maxCharacters: number): Joi.StringSchema {
  return configuredText(maxCharacters)
    .pattern(/\S/, 'name')
    .messages({ 'string.pattern.name': '{{#label}} must not be only spaces' });
}

/** An integer id of an account, job, run, project or environment: positive, exact in JSON. */
export function isIntegerId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** A field with an integer id. */
export const integerId = Joi.any().custom((value: unknown, helpers) =>
  isIntegerId(value) ? value : helpers.message({ custom: '{{#label}} must be a positive integer' }),
);

/**
 * A UTC time that a job runner reports, in microseconds; null counts as absent. Truncated instead of rounded as PostgreSQL
 * does, since a run must not start in the future.
 */
export const reportedTime = Joi.string()
  .empty(null)
  .custom((text: string, helpers) => {
    const time = nanosecondTimestamp(text);
    return time === null
      ? helpers.message({ custom: '{{#label}} must be a UTC time like 2026-01-31T23:59:59Z' })
      : `${time.slice(0, 26)}Z`;
  });

/** Returns the id that digits represent: 1 or more, exact as a number, without a leading zero. Otherwise null. */
export function integerIdFromText(text: string): number | null {
  if (!/^[1-9]\d{0,15}$/.test(text)) return null;
  const value = Number(text);
  return isIntegerId(value) ? value : null;
}
