import type { Readable, Writable } from 'node:stream';
import { RunhookError } from '@runhook/client';
import { writeLine } from '@runhook/runtime/terminal-text';
import { CommanderError, InvalidArgumentError, Option } from 'commander';

/** The environment and streams of a process, which tests replace. */
export interface ProcessContext {
  env: NodeJS.ProcessEnv;
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  /** Returns a signal that Ctrl-C aborts from this call on. */
  createStopSignal(): AbortSignal;
}

/** The environment of a command, with its output functions. */
export interface Context extends Omit<ProcessContext, 'stderr'> {
  /** For a protocol; results are written by the functions below. */
  stdout: Writable;
  isJson: boolean;
  /** Writes the result of a command: text for users, or a JSON document for scripts. */
  writeResult(text: string, json: unknown): Promise<void>;
  /** Writes one of several results, each as one line of JSON for scripts. */
  writeRow(text: string, json: unknown): Promise<void>;
  /** Writes a note to standard error; no effect with `--json`. */
  writeNote(text: string): Promise<void>;
}

export interface Command<Options = never> {
  name: string;
  /** Shown in the list of commands. */
  summary: string;
  /** Complete sentences. */
  description: string;
  /** Arguments in the syntax of commander: `<webhook>`, `[files...]`. */
  arguments?: readonly [flags: string, description: string][];
  options: readonly Option[];
  /** Command lines without the name of the program. */
  examples: readonly string[];
  /** Resolves with the exit code: 0, or 1 if the command found a problem. */
  run(context: Context, options: Options, positionals: readonly string[]): Promise<0 | 1>;
}

export interface CommandGroup {
  name: string;
  summary: string;
  commands: readonly Command[];
}

/** A failure that the user can understand; the message is a sentence. */
export class CliError extends Error {
  /** Error code for scripts. */
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, message: string, exitCode = 1) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** The command line is invalid; nothing was done. */
export class UsageError extends CliError {
  constructor(message: string) {
    super('usage', message, 2);
  }
}

/** Converts any error to one that can be shown to the user. */
export function cliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof CommanderError) return new UsageError(parserMessage(error));
  if (error instanceof RunhookError) return new CliError(errorCode(error), rejectionText(error));
  const { code, message = '', stack } = error as NodeJS.ErrnoException;
  if (code !== undefined && /^E[A-Z0-9]+$/.test(code)) return new CliError('system', `${message}.`);
  return new CliError('unhandled_error', `Unexpected error (a defect of runhook): ${stack ?? String(error)}`);
}

const errorCode = ({ status }: RunhookError) => (status === 0 ? 'no_response' : `rejected_${status}`);

function rejectionText({ status, message, errors, retryAfterSeconds }: RunhookError): string {
  if (status === 401)
    return 'The service rejected the token: it is invalid, revoked or expired. Use another token.';
  if (status === 429 || status === 503)
    return `${message} Try again${retryAfterSeconds === null ? ' later' : ` in ${retryAfterSeconds} s`}.`;
  return errors.length > 0
    ? `The service rejected the request: ${errors.map((one) => one.message).join('; ')}.`
    : message;
}

/** Removes the value of an unknown option from the message, because it may be a token. */
function parserMessage({ message }: CommanderError): string {
  const sentence = message.replace(/^error: /, '').replace(/'(--?[^=']*)=[\s\S]*'/, "'$1'");
  return sentence.replace(/\s+/g, ' ');
}

/** @param parse throws an `InvalidArgumentError`; without it any text is accepted */
export function option(flags: string, description: string, parse?: (text: string) => unknown): Option {
  const newOption = new Option(flags, description);
  return parse === undefined ? newOption : newOption.argParser(parse);
}

/** An option that may be repeated. */
export function repeatable(flags: string, description: string, parse: (text: string) => unknown): Option {
  return new Option(flags, description).argParser((text, previous: unknown[] = []) => [
    ...previous,
    parse(text),
  ]);
}

export function choice(flags: string, description: string, choices: readonly string[]): Option {
  return new Option(flags, description).choices(choices);
}

/** Parsers for the values of options. */
export const parsers = {
  integer:
    (min: number, max: number) =>
    (text: string): number => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (!(value >= min && value <= max))
        throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
      return value;
    },

  id: (text: string): number => parsers.integer(1, Number.MAX_SAFE_INTEGER)(text),

  httpUrl: (text: string): string => {
    if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
      throw new InvalidArgumentError('It must be an http or https URL.');
    return text;
  },

  /** Parses ISO 8601 or the time before now (`12h`) to microseconds since the epoch, as digits. */
  timestamp: (text: string): string => {
    const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
    const ms = count === undefined ? Date.parse(text) : Date.now() - Number(count) * (UNIT_MS[unit] ?? 0);
    if (Number.isNaN(ms) || ms < 0)
      throw new InvalidArgumentError(
        'It must be an age (30m, 12h, 7d) or an ISO 8601 time with its time zone.',
      );
    return String(BigInt(Math.trunc(ms)) * 1000n);
  },
};

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Formats microseconds since the epoch (digits) for users: UTC, to the second. */
export function timeText(micros: string | null | undefined): string {
  if (micros === null || micros === undefined) return '';
  return new Date(Number(BigInt(micros) / 1000n)).toISOString().replace(/\.\d+Z$/, 'Z');
}

export function createContext(processContext: ProcessContext, isJson: boolean): Context {
  const { stderr, ...rest } = processContext;
  const { stdout } = rest;
  const write = (text: string, json: unknown, indent?: number) =>
    writeLine(stdout, isJson ? JSON.stringify(json, null, indent) : text);
  return {
    ...rest,
    isJson,
    writeResult: (text, json) => write(text, json, 2),
    writeRow: (text, json) => write(text, json),
    writeNote: async (text) => (isJson ? undefined : writeLine(stderr, text)),
  };
}
