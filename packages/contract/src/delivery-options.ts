import Joi from 'joi';
import { configuredText } from './field-problems.ts';

/** Limits of the options of a subscription (docs/contract.md#delivery-options). */
export const OPTION_LIMITS = {
  formatOptionsMax: 10,
  formatOptionCharactersMax: 2_048,
  labelsMax: 10,
  labelValueCharactersMax: 255,
  rateLimitMin: 0.1,
  rateLimitMax: 1_000,
} as const;

/** Begins with a letter or a digit, which excludes the object property `__proto__`. */
export const LABEL_KEY = /^[0-9A-Za-z][0-9A-Za-z._/-]{0,62}$/;
/** Name of an option of a format, such as `routing_key`. */
export const FORMAT_OPTION_NAME = /^[a-z][a-z0-9_]{0,62}$/;

/** An object of strings whose names match a pattern; null and an empty object mean none. */
function textsByName(
  name: RegExp,
  limits: { namesMax: number; charactersMax: number; allowsEmpty: boolean },
) {
  const text = configuredText(limits.charactersMax);
  return Joi.object()
    .pattern(name, limits.allowsEmpty ? text.allow('') : text)
    .options({ stripUnknown: false, allowUnknown: false })
    .max(limits.namesMax)
    .allow(null)
    .custom((texts: Record<string, string> | null) =>
      texts === null || Object.keys(texts).length === 0 ? null : texts,
    )
    .messages({ 'object.max': `{{#label}} must not contain more than ${limits.namesMax}` });
}

/** Options of a format. Their names and values are those of the format, which an update may omit. */
export const formatOptionsSchema = textsByName(FORMAT_OPTION_NAME, {
  namesMax: OPTION_LIMITS.formatOptionsMax,
  charactersMax: OPTION_LIMITS.formatOptionCharactersMax,
  allowsEmpty: false,
}).messages({ 'object.unknown': '{{#label}} is not the name of an option' });

export const labelsSchema = textsByName(LABEL_KEY, {
  namesMax: OPTION_LIMITS.labelsMax,
  charactersMax: OPTION_LIMITS.labelValueCharactersMax,
  allowsEmpty: true,
}).messages({
  'object.unknown':
    '{{#label}} is not a label: the key has 1 to 63 letters, digits or . _ / -, and begins with a letter or digit',
});

export const rateLimitSchema = Joi.number()
  .min(OPTION_LIMITS.rateLimitMin)
  .max(OPTION_LIMITS.rateLimitMax)
  .allow(null)
  .messages({
    'number.base': '{{#label}} must be a number',
    'number.min': `{{#label}} must be ${OPTION_LIMITS.rateLimitMin} to ${OPTION_LIMITS.rateLimitMax} requests per second`,
    'number.max': `{{#label}} must be ${OPTION_LIMITS.rateLimitMin} to ${OPTION_LIMITS.rateLimitMax} requests per second`,
  });

/** Null means false. */
export const flagSchema = Joi.boolean().allow(null);
