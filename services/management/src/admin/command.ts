import { connectionProblem, type EncryptionKey, type Pool } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { QueueUnavailableError } from '@runhook/queue';
import { EnvironmentError } from '@runhook/runtime';
import { writeLine } from '@runhook/runtime/terminal-text';
import { CommanderError, Option } from 'commander';
import type { optionValues } from './options.ts';
import type { Input } from './users.ts';

/** What a command has to tell: one document for scripts, the same in words for people. No newline at the end. */
export interface Answer {
  json: unknown;
  text: string;
  /** 0 when omitted. */
  exitCode?: number;
}

/** What a command works with. */
export interface Resources {
  prisma: PrismaClient;
  pool: Pool;
  /** Newest first; empty unless the command says that it needs them. */
  encryptionKeys: readonly EncryptionKey[];
  /** Of the commands that use the queue; those that cannot do without have it. */
  queueUrl?: string;
  stdin: Input;
}

interface Described {
  name: string;
  /** For the list of commands. */
  summary: string;
  /** Sentences. */
  description: string;
  options: readonly Option[];
  /** Without the name of the program. */
  examples: readonly string[];
}

export interface Command<Options = never> extends Described {
  /** Whether it cannot do without ENCRYPTION_KEYS. */
  needsKeys?: boolean;
  /** Whether it cannot do without QUEUE_URL. */
  needsQueue?: boolean;
  /** Whether it does more with QUEUE_URL. */
  usesQueue?: boolean;
  /** What no single option shows to be wrong; throws before the database is asked anything. */
  check?(options: Options): void;
  run(options: Options, resources: Resources): Promise<Answer>;
}

/** One that has to work without a database that answers. */
export interface CommandWithoutDatabase<Options = never> extends Described {
  runWithout(options: Options, env: NodeJS.ProcessEnv): Promise<Answer>;
}

export interface CommandGroup {
  name: string;
  summary: string;
  commands: readonly Command[];
}

type OptionValues = typeof optionValues;
/** Of a value that one command alone takes. */
type Parser = (text: string, previous: unknown) => unknown;

/** @param parse makes the parser of the value from the option's name */
export function valueOption(
  flags: string,
  description: string,
  parse: (option: string) => ReturnType<OptionValues[keyof OptionValues]> | Parser,
): Option {
  const [name = flags] = flags.split(' ');
  return new Option(flags, description).argParser(
    parse(name) as (text: string, previous: unknown) => unknown,
  );
}

export function requiredOption(...parameters: Parameters<typeof valueOption>): Option {
  return valueOption(...parameters).makeOptionMandatory();
}

export function flag(name: string, description: string): Option {
  return new Option(name, description);
}

/** A refusal that the operator is told of in a sentence. Everything else that is thrown is a fault of ours. */
export class AdminError extends Error {
  /** For scripts. */
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, message: string, exitCode = 1) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** The command line is not one we take; nothing was done. The message names the option. */
export class UsageError extends AdminError {
  constructor(message: string) {
    super('usage', message, 2);
  }
}

/** What was named does not exist. */
export class NotFoundError extends AdminError {
  constructor(message: string) {
    super('not_found', message);
  }
}

const NO_DATABASE =
  'The database of DATABASE_URL cannot be reached: is it running? (`npm start` must stay up while its database is used.)';
const NO_QUEUE = 'The queue of QUEUE_URL cannot be reached: is it running, and is its password right?';

/** As an error to tell: what the command line's parser and the database throw gets its sentence. */
export function adminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof CommanderError) return new UsageError(parserMessage(error));
  if (error instanceof EnvironmentError) return new AdminError('environment', error.message);
  if (error instanceof QueueUnavailableError) return new AdminError('queue_unavailable', NO_QUEUE);
  const problem = connectionProblem(error);
  if (problem?.code === 'database_unavailable') return new AdminError(problem.code, NO_DATABASE);
  if (problem !== null) return new AdminError(problem.code, problem.sentence);
  return new AdminError('fault', `Something went wrong that should not have: ${withoutMessage(error)}`);
}

/** An unknown option is repeated without what was given to it, which may be a password. */
function parserMessage({ message }: CommanderError): string {
  const sentence = message.replace(/^error: /, '').replace(/'(--?[^=']*)=[\s\S]*'/, "'$1'");
  return sentence.replace(/\s+/g, ' ');
}

/** Where it happened, not what it says: a message of a driver may hold the values it was given. */
function withoutMessage(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const { code } = error as { code?: unknown };
  return [`${error.name}${typeof code === 'string' ? ` ${code}` : ''}`, ...frames].join('\n');
}

/** As `writeLine`; trouble is an `AdminError`. */
export async function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  await writeLine(stream, text).catch((error: NodeJS.ErrnoException) => {
    throw new AdminError('output', `What was done is done, but it could not be written: ${error.code}.`);
  });
}
