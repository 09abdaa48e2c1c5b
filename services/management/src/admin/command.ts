import { type EncryptionKey, findConnectionProblem, type Pool } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { QueueUnavailableError } from '@runhook/queue';
import { EnvironmentError } from '@runhook/runtime';
import { writeLine } from '@runhook/runtime/terminal-text';
import { CommanderError, Option } from 'commander';
import type { optionValues } from './options.ts';
import type { Input } from './users.ts';

/** Output of a command: a JSON document for scripts, and the same as text for people, without a final newline. */
export interface CommandResult {
  json: unknown;
  text: string;
  /** 0 when omitted. */
  exitCode?: number;
}

/** Resources of a command. */
export interface Resources {
  prisma: PrismaClient;
  pool: Pool;
  /** Newest first; empty unless the command needs them. */
  encryptionKeys: readonly EncryptionKey[];
  /** Set for commands that need the queue, or use it if it is configured. */
  queueUrl?: string;
  stdin: Input;
}

interface CommandDescription {
  name: string;
  /** Summary for the list of commands. */
  summary: string;
  /** Description in sentences. */
  description: string;
  options: readonly Option[];
  /** Example commands without the name of the program. */
  examples: readonly string[];
}

export interface Command<Options = never> extends CommandDescription {
  /** Whether the command requires ENCRYPTION_KEYS. */
  needsKeys?: boolean;
  /** Whether the command requires QUEUE_URL. */
  needsQueue?: boolean;
  /** Whether the command uses QUEUE_URL if it is set. */
  usesQueue?: boolean;
  /** Checks combinations of options; throws before the database is queried. */
  check?(options: Options): void;
  run(options: Options, resources: Resources): Promise<CommandResult>;
}

/** A command that must work while the database is unavailable. */
export interface CommandWithoutDatabase<Options = never> extends CommandDescription {
  runWithoutDatabase(options: Options, env: NodeJS.ProcessEnv): Promise<CommandResult>;
}

export interface CommandGroup {
  name: string;
  summary: string;
  commands: readonly Command[];
}

type OptionValues = typeof optionValues;
/** Parser of a value that only one command has. */
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

/** An error whose message is a sentence for the operator. {@link adminError} converts all other errors. */
export class AdminError extends Error {
  /** Code for scripts. */
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, message: string, exitCode = 1) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** The command line is invalid, and nothing was done. The message names the option. */
export class UsageError extends AdminError {
  constructor(message: string) {
    super('usage', message, 2);
  }
}

/** The named object does not exist. */
export class NotFoundError extends AdminError {
  constructor(message: string) {
    super('not_found', message);
  }
}

const DATABASE_UNREACHABLE =
  'The database of DATABASE_URL cannot be reached: is it running? (`npm start` must stay up while its database is used.)';
const QUEUE_UNREACHABLE =
  'The queue of QUEUE_URL cannot be reached: is it running, and is its password correct?';

/** Converts any error to one with a sentence for the operator; an unknown error is a defect of Runhook. */
export function adminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof CommanderError) return new UsageError(parserMessage(error));
  if (error instanceof EnvironmentError) return new AdminError('environment', error.message);
  if (error instanceof QueueUnavailableError) return new AdminError('queue_unavailable', QUEUE_UNREACHABLE);
  const problem = findConnectionProblem(error);
  if (problem?.code === 'database_unavailable') return new AdminError(problem.code, DATABASE_UNREACHABLE);
  if (problem !== null) return new AdminError(problem.code, problem.sentence);
  return new AdminError(
    'unhandled_error',
    `Unexpected error (a defect of Runhook): ${stackWithoutMessage(error)}`,
  );
}

/** Returns the parser's message without the value of an unknown option, which may be a password. */
function parserMessage({ message }: CommanderError): string {
  const sentence = message.replace(/^error: /, '').replace(/'(--?[^=']*)=[\s\S]*'/, "'$1'");
  return sentence.replace(/\s+/g, ' ');
}

/** Shows the stack trace without the message, because messages of drivers may contain values. */
function stackWithoutMessage(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const { code } = error as { code?: unknown };
  return [`${error.name}${typeof code === 'string' ? ` ${code}` : ''}`, ...frames].join('\n');
}

/** Writes as `writeLine` does; throws an `AdminError` on failure. */
export async function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  await writeLine(stream, text).catch((error: NodeJS.ErrnoException) => {
    throw new AdminError(
      'output',
      `The command was executed, but its output could not be written: ${error.code}.`,
    );
  });
}
