import { readFileSync } from 'node:fs';
import Joi from 'joi';

/** A shorter value may occur in any sentence, so finding it there is no sign that the sentence reveals it. */
const echoLengthMin = 4;

/** Replaces messages of Joi that would repeat the value or the error of a validator. */
const valueFreeMessages = {
  'any.custom': '{{#label}} is not valid',
  'string.pattern.base': '{{#label}} does not have the required form',
  'string.pattern.name': '{{#label}} is not a valid {{#name}}',
  'string.pattern.invert.base': '{{#label}} has a form that is not allowed',
  'string.pattern.invert.name': '{{#label}} must not be a {{#name}}',
};

/**
 * The environment does not match its schema. `problems` has one line per problem, which names the variable but no
 * value.
 */
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
 * Parses the settings of a process from its environment. Unknown variables are ignored; an empty variable counts as not
 * set. `NAME_FILE` names a file that contains the value of `NAME`. Returns the converted values with the schema's
 * defaults.
 *
 * Custom validators should report problems with `helpers.message`; errors that they throw are not shown.
 * @throws EnvironmentError with all problems
 */
export function parseEnvironment<T>(schema: Joi.ObjectSchema<T>, source: NodeJS.ProcessEnv = process.env): T {
  const names = Object.keys(schema.describe().keys ?? {});
  const { environment, problems } = readFileVariables(names, source);
  const values = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const { error, value } = schema.validate(values, {
    abortEarly: false,
    stripUnknown: true,
    messages: valueFreeMessages,
    errors: { label: 'path', wrap: { label: false } },
  });
  // A variable whose file cannot be read is also missing, which need not be reported.
  const details = (error?.details ?? []).filter(({ path }) => !Object.hasOwn(problems, String(path[0])));
  if (details.length === 0 && Object.keys(problems).length === 0) return value as T;
  throw new EnvironmentError([
    ...Object.values(problems),
    ...details.map((detail) => describeProblem(detail, values)),
  ]);
}

function describeProblem(
  detail: Joi.ValidationErrorItem,
  values: Record<string, string | undefined>,
): string {
  const [variable] = detail.path;
  if (variable === undefined) return detail.message.replace(/^value\b/, 'The environment');
  const raw = values[String(variable)] ?? '';
  const repeatsValue = raw.length >= echoLengthMin && detail.message.includes(raw);
  const namesVariable = detail.message.includes(String(variable));
  if (repeatsValue) return `${variable} is not valid`;
  return namesVariable ? detail.message : `${variable}: ${detail.message}`;
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Joi rules for variables that several services read. */
export const environmentRules = {
  postgresUrl: () => Joi.string().pattern(/^postgres(ql)?:\/\//, 'postgres:// URL'),
  /** 0 selects any free port. */
  port: () => Joi.number().port().allow(0),
  host: () => Joi.string().hostname(),
  integer: (min: number, max: number) => Joi.number().integer().min(min).max(max),
  /** OTLP over HTTP. */
  httpUrl: () => Joi.string().uri({ scheme: ['http', 'https'] }),
  flag: () => Joi.boolean(),
  logLevel: () => Joi.string().valid(...LOG_LEVELS),
  /**
   * Converts the text with `parse`, whose errors must be plain sentences that do not contain the value.
   * @param parse gets the text and the other variables
   */
  parsedBy: (parse: (text: string, environment: Record<string, string | undefined>) => unknown) =>
    Joi.string().custom((text: string, helpers) => {
      try {
        return parse(text, helpers.state.ancestors[0]);
      } catch (error) {
        return helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason: (error as Error).message });
      }
    }),
};

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>;

/** Maps `{ DATABASE_URL: string }` to the names that the code uses: `{ databaseUrl: string }`. */
export type SettingsOf<Environment> = {
  [Name in keyof Environment as CamelCase<Name & string>]: Environment[Name];
};

/** Parses the settings of a process with names in camel case; throws an `EnvironmentError` with all problems. */
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
  /** The environment, in which each variable that has a file has the file's text. */
  environment: NodeJS.ProcessEnv;
  /** Problems by name of the variable. They contain neither the file's content nor its path. */
  problems: Record<string, string>;
}

/**
 * Reads variables from files. `NAME_FILE` may name a file with the value of `NAME`, as container platforms provide
 * secrets: such a value does not appear in process lists, `docker inspect` or dumps of the environment. Trailing line
 * breaks of the file are removed.
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
      environment[name] = readValue(path);
    } catch (error) {
      problems[name] = `${name}${FILE_SUFFIX}: ${describeFileError(error)}`;
    }
  }
  return { environment, problems };
}

class UnusableFileError extends Error {}

function readValue(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new UnusableFileError(`the file is larger than ${FILE_BYTES_MAX} bytes`);
  }
  const text = bytes.toString('utf8').replace(/[\r\n]+$/, '');
  if (text === '') throw new UnusableFileError('the file is empty');
  return text;
}

function describeFileError(error: unknown): string {
  if (error instanceof UnusableFileError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  return `the file cannot be read${code === undefined ? '' : ` (${code})`}`;
}

/**
 * Returns settings for the start-up log line. Each one named in `secretNames` is replaced by `<name>Configured`, true
 * if it is set. In other settings, credentials inside of URLs are masked.
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

/**
 * Masks everything before the last @ of the authority, because a password may contain an @, and password parameters.
 */
function maskCredentials(text: string): string {
  return text.replace(/:\/\/[^/?#\s]*@/g, '://***@').replace(/([?&]\w*password=)[^&#\s]*/gi, '$1***');
}
