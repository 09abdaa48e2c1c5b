import type Joi from 'joi';

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

export function problemsOf(error: Joi.ValidationError, whole: string): Problem[] {
  return error.details.map((detail) => {
    const field = detail.path.join('.') || whole;
    return {
      field,
      message: detail.message.startsWith('value ') ? `${whole}${detail.message.slice(5)}` : detail.message,
    };
  });
}
