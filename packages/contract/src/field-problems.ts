import Joi from 'joi';

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

/** PostgreSQL text cannot hold NUL, so a field that becomes a column refuses it at the door. */
export function textWithoutNul(maxCharacters: number): Joi.StringSchema {
  return Joi.string()
    .max(maxCharacters)
    .pattern(/^[^\0]*$/)
    .messages({ 'string.pattern.base': '{{#label}} must not contain NUL characters' });
}

/** What people know something by: not empty, and not only spaces. */
export function nameText(maxCharacters: number): Joi.StringSchema {
  return textWithoutNul(maxCharacters)
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
