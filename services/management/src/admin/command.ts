import type { Database, EncryptionKey } from '@runhook/database';
import { Option } from 'commander';
import type { optionValues } from './option-values.ts';
import type { Input } from './password.ts';

/** What a command has to tell: one document for scripts, the same in words for people. No newline at the end. */
export interface Answer {
  json: unknown;
  text: string;
  /** 0 when omitted. */
  exitCode?: number;
}

/** What a command works with. */
export interface Resources {
  prisma: Database['prisma'];
  pool: Database['pool'];
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
