import type Joi from 'joi';
import { readFileVariables } from './variable-files.ts';

/** A value this short may be part of any word, so finding it in a sentence proves nothing. */
const tellingLengthMin = 4;

/** Joi's own sentences for these would repeat the value or what a validator said about it. */
const valueFreeMessages = {
  'any.custom': '{{#label}} is not valid',
  'string.pattern.base': '{{#label}} does not have the required form',
  'string.pattern.name': '{{#label}} is not a valid {{#name}}',
  'string.pattern.invert.base': '{{#label}} has a form that is not allowed',
  'string.pattern.invert.name': '{{#label}} must not be a {{#name}}',
};

/** The environment does not fit its schema. `problems` has one line for each, which names the variable and no value. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
  readonly code = 'ERR_ENVIRONMENT';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The environment is not valid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/**
 * Reads the settings of a process from its environment, once. Unknown variables are ignored; one that is set to nothing
 * counts as not set. `NAME_FILE` names a file that holds the value of `NAME`. Returns the converted values with the
 * schema's defaults.
 *
 * Custom validators should say what is wrong with `helpers.message`; what they throw is not shown.
 * @throws EnvironmentError with every problem at once.
 */
export function parseEnvironment<T>(schema: Joi.ObjectSchema<T>, source: NodeJS.ProcessEnv = process.env): T {
  const names = Object.keys(schema.describe().keys ?? {});
  const { environment, problems } = readFileVariables(names, source);
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const { error, value } = schema.validate(given, {
    abortEarly: false,
    stripUnknown: true,
    messages: valueFreeMessages,
    errors: { label: 'path', wrap: { label: false } },
  });
  // A variable whose file cannot be had is missing as well, which need not be said.
  const details = (error?.details ?? []).filter(({ path }) => !Object.hasOwn(problems, String(path[0])));
  if (details.length === 0 && Object.keys(problems).length === 0) return value as T;
  throw new EnvironmentError([
    ...Object.values(problems),
    ...details.map((detail) => describeProblem(detail, given)),
  ]);
}

function describeProblem(detail: Joi.ValidationErrorItem, given: Record<string, string | undefined>): string {
  const [variable] = detail.path;
  if (variable === undefined) return detail.message.replace(/^value\b/, 'The environment');
  const raw = given[String(variable)] ?? '';
  const echoes = raw.length >= tellingLengthMin && detail.message.includes(raw);
  const names = detail.message.includes(String(variable));
  if (echoes) return `${variable} is not valid`;
  return names ? detail.message : `${variable}: ${detail.message}`;
}
