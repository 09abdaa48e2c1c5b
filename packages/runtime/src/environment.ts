import { readFileSync } from 'node:fs';
import Joi from 'joi';

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

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Rules of variables that more than one service reads. */
export const environmentRules = {
  postgresUrl: () => Joi.string().pattern(/^postgres(ql)?:\/\//, 'postgres:// URL'),
  /** 0 takes any free port. */
  port: () => Joi.number().port().allow(0),
  host: () => Joi.string().hostname(),
  wholeNumber: (min: number, max: number) => Joi.number().integer().min(min).max(max),
  /** OTLP over HTTP. */
  httpUrl: () => Joi.string().uri({ scheme: ['http', 'https'] }),
  flag: () => Joi.boolean(),
  logLevel: () => Joi.string().valid(...LOG_LEVELS),
  /** The value that `parse` reads from the text; what it throws must be a plain sentence without the value. */
  parsedBy: (parse: (text: string) => unknown) =>
    Joi.string().custom((text: string, helpers) => {
      try {
        return parse(text);
      } catch (error) {
        return helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason: (error as Error).message });
      }
    }),
};

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>;

/** `{ DATABASE_URL: string }` as the code calls it: `{ databaseUrl: string }`. */
export type SettingsOf<Environment> = {
  [Name in keyof Environment as CamelCase<Name & string>]: Environment[Name];
};

/** The settings of a process from its environment; throws an `EnvironmentError` with every problem at once. */
export function parseSettings<Environment extends object>(
  schema: Joi.ObjectSchema<Environment>,
  source?: NodeJS.ProcessEnv,
): SettingsOf<Environment> {
  const settings = Object.entries(parseEnvironment(schema, source)).map(([name, value]) => [
    name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(settings) as SettingsOf<Environment>;
}

const FILE_SUFFIX = '_FILE';
const FILE_BYTES_MAX = 65_536;

export interface FileVariables {
  /** The environment with the text of each file under the name of its variable. */
  environment: NodeJS.ProcessEnv;
  /** By name of the variable. What is wrong with its file; never what stands in it, nor its path. */
  problems: Record<string, string>;
}

/**
 * Every variable `NAME` may come from a file instead, named by `NAME_FILE`, the way container platforms hand over
 * secrets: it shows in no process list, no `docker inspect` and no dump of the environment. Line ends at the end of
 * the file do not count.
 */
function readFileVariables(names: readonly string[], source: NodeJS.ProcessEnv): FileVariables {
  const environment = { ...source };
  const problems: Record<string, string> = {};
  for (const name of names) {
    const path = source[name + FILE_SUFFIX];
    if (!path) continue;
    if (source[name]) {
      problems[name] = `${name} and ${name}${FILE_SUFFIX} are both set; set one of them`;
      continue;
    }
    try {
      environment[name] = textOf(path);
    } catch (error) {
      problems[name] = `${name}${FILE_SUFFIX}: ${describe(error)}`;
    }
  }
  return { environment, problems };
}

class UnusableFileError extends Error {}

function textOf(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new UnusableFileError(`the file is larger than ${FILE_BYTES_MAX} bytes`);
  }
  const text = bytes.toString('utf8').replace(/[\r\n]+$/, '');
  if (text === '') throw new UnusableFileError('the file is empty');
  return text;
}

function describe(error: unknown): string {
  if (error instanceof UnusableFileError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  return `the file cannot be read${code === undefined ? '' : ` (${code})`}`;
}

/**
 * Settings as the start-up log line may show them. Each one named in `secretNames` becomes `<name>Configured`, true when it
 * is set to something. In the others, credentials inside a URL are masked all the same.
 */
export function describeSettings<T extends object>(
  settings: T,
  secretNames: readonly (keyof T & string)[] = [],
): Record<string, unknown> {
  const secrets = new Set<string>(secretNames);
  const described: Record<string, unknown> = {};
  for (const name of secrets) described[`${name}Configured`] = isSet(settings[name as keyof T]);
  for (const [name, value] of Object.entries(settings)) {
    if (!secrets.has(name)) described[name] = typeof value === 'string' ? maskCredentials(value) : value;
  }
  return described;
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** Everything before the last @ of the authority, for a password may hold an @ of its own; and what is a parameter. */
function maskCredentials(text: string): string {
  return text.replace(/:\/\/[^/?#\s]*@/g, '://***@').replace(/([?&]\w*password=)[^&#\s]*/gi, '$1***');
}
