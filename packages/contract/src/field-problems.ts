import Joi from 'joi';
import { hasInvalidText, INVALID_TEXT_PROBLEM, isLongerThan, wellFormedText } from './text.ts';

/** One thing wrong with an input: `field` is its path (`data.runStartedAt`), `message` a sentence that names it. */
export interface Problem {
  field: string;
  message: string;
}

/** Report everything at once, name the path without quotes, change no value on the way. */
export const VALIDATION_OPTIONS = {
  abortEarly: false,
  convert: false,
  stripUnknown: true,
  errors: { label: 'path', wrap: { label: false, array: '' } },
} as const satisfies Joi.ValidationOptions;

/** Whoever has more wrong than that is helped by no longer list. */
const PROBLEMS_MAX = 20;

/** The first {@link PROBLEMS_MAX} of them. */
export function problemsOf(error: Joi.ValidationError, whole: string): Problem[] {
  return error.details.slice(0, PROBLEMS_MAX).map((detail) => {
    const field = detail.path.join('.') || whole;
    return {
      field,
      message: detail.message.startsWith('value ') ? `${whole}${detail.message.slice(5)}` : detail.message,
    };
  });
}

/** Configured text: has at most `maxCharacters` code points, and is rejected if a character is invalid (docs/contract.md#text). */
export function configuredText(maxCharacters: number): Joi.StringSchema {
  return boundedText(maxCharacters).custom((text: string, helpers) =>
    hasInvalidText(text) ? helpers.message({ custom: `{{#label}} ${INVALID_TEXT_PROBLEM}` }) : text,
  );
}

/** Text that a job runner reports: has at most `maxCharacters` code points, and is repaired instead of rejected. */
export function reportedText(maxCharacters: number): Joi.StringSchema {
  return boundedText(maxCharacters).custom(wellFormedText);
}

/** A text with a limit in code points: `max()` of Joi counts UTF-16 units. */
export function boundedText(maxCharacters: number): Joi.StringSchema {
  return Joi.string().custom((text: string, helpers) =>
    isLongerThan(text, maxCharacters) ? helpers.error('string.max', { limit: maxCharacters }) : text,
  );
}

/** What people know something by: not empty, and not only spaces. */
export function nameText(maxCharacters: number): Joi.StringSchema {
  return configuredText(maxCharacters)
    .pattern(/\S/, 'name')
    .messages({ 'string.pattern.name': '{{#label}} must not be only spaces' });
}

/** An integer id of an account, job, run, project or environment: positive, exact in JSON. */
export function isIntegerId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** The integer that a digit string names, or null. */
export function integerIdFromText(text: string): number | null {
  if (!/^[1-9]\d{0,15}$/.test(text)) return null;
  const value = Number(text);
  return isIntegerId(value) ? value : null;
}
