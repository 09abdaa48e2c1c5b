import { type EncryptionKey, isDatabaseUnavailable, type Pool, SchemaBehindError } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
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
  stdin: Input;
}

export interface Command<Options = never> {
  name: string;
  /** For the list of commands. */
  summary: string;
  /** Sentences. */
  description: string;
  options: readonly Option[];
  /** Without the name of the program. */
  examples: readonly string[];
  /** Whether it cannot do without ENCRYPTION_KEYS. */
  needsKeys?: boolean;
  /** What no single option shows to be wrong; throws before the database is asked anything. */
  check?(options: Options): void;
  run(options: Options, resources: Resources): Promise<Answer>;
}

export interface CommandGroup {
  name: string;
  summary: string;
  commands: readonly Command[];
}

type OptionValues = typeof optionValues;

/** @param parse makes the parser of the value from the option's name */
export function valueOption(
  flags: string,
  description: string,
  parse: (option: string) => ReturnType<OptionValues[keyof OptionValues]>,
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

/** What PostgreSQL says before any statement of ours could be wrong: how it is reached and who may do what. */
const CONNECTION_PROBLEMS: Record<string, [code: string, message: string]> = {
  '28000': ['database_login_refused', 'The database refuses the user of DATABASE_URL.'],
  '28P01': ['database_login_refused', 'The database refuses the user or the password of DATABASE_URL.'],
  '3D000': ['database_missing', 'The server of DATABASE_URL has no database of that name.'],
  '42501': ['database_permission', 'The user of DATABASE_URL may not do this in the database.'],
};

/** As an error to tell: what the command line's parser and the database throw gets its sentence. */
export function adminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof CommanderError) return new UsageError(parserMessage(error));
  if (error instanceof EnvironmentError) return new AdminError('environment', error.message);
  if (error instanceof SchemaBehindError) {
    return new AdminError(
      'database_not_migrated',
      'The database lacks tables of this version: apply the migrations first, with the same version.',
    );
  }
  const problem = CONNECTION_PROBLEMS[sqlState(error) ?? ''];
  if (problem !== undefined) return new AdminError(...problem);
  if (isDatabaseUnavailable(error)) {
    return new AdminError(
      'database_unavailable',
      'The database of DATABASE_URL cannot be reached: is it running? (`npm start` must stay up while its database is used.)',
    );
  }
  return new AdminError('fault', `Something went wrong that should not have: ${withoutMessage(error)}`);
}

/** An unknown option is repeated without what was given to it, which may be a password. */
function parserMessage({ message }: CommanderError): string {
  const sentence = message.replace(/^error: /, '').replace(/'(--?[^=']*)=[\s\S]*'/, "'$1'");
  return sentence.replace(/\s+/g, ' ');
}

function sqlState(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
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
