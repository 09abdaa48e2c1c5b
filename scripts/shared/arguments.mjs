import { parseArgs } from 'node:util';

/**
 * Returns the help of a script in the form that all scripts share.
 *
 * @param {{ call: string, purpose: string, duration: string, prerequisites: string, details?: string }} script `call` is the command
 */
export function usage({ call, purpose, duration, prerequisites, details = '' }) {
  const head = `${call}\n\nPurpose:       ${purpose}\nDuration:      ${duration}\nPrerequisites: ${prerequisites}`;
  return details === '' ? head : `${head}\n\n${details}`;
}

/** Whether the argument asks for the help of a script. */
export function isHelp(arg) {
  return arg === '--help' || arg === '-h';
}

/**
 * Runs the part of a script that its first argument names. The part gets the other arguments.
 *
 * @param {string} help of the script; also printed if there is no argument
 * @param {Record<string, () => Promise<unknown>>} parts each imports its module
 */
export async function runPart(help, parts) {
  const [name] = process.argv.slice(2);
  if (name === undefined || isHelp(name)) {
    process.stdout.write(`usage: ${help}\n`);
    process.exit(name === undefined ? 2 : 0);
  }
  requireChoice('the part', name, Object.keys(parts));
  process.argv.splice(2, 1);
  await parts[name]();
}

/**
 * Returns the arguments of a command. Prints the usage and exits with 0 for `--help`; names an unknown option and exits with 2.
 *
 * @param {string} usage its first line is the call, without "usage: "
 * @param {import('node:util').ParseArgsConfig} config
 * @returns {{ values: Record<string, unknown>, positionals: string[] }} as of `parseArgs`
 */
export function readArguments(usage, config) {
  if (process.argv.slice(2).some(isHelp)) {
    process.stdout.write(`usage: ${usage}\n`);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS')) throw error;
    return rejectArguments(`${error.message}\n\nusage: ${usage}`);
  }
}

/** Prints the message and exits with 2. The command must not have done anything yet. */
export function rejectArguments(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** Ends the command with an error if the text is none of the choices. */
export function requireChoice(name, text, choices) {
  if (!choices.includes(text))
    rejectArguments(`${name} is "${text}", but must be one of ${choices.join(', ')}`);
}

/**
 * @param {string} name of the option, with its dashes
 * @param {string} text its value
 * @param {{ min?: number, isInteger?: boolean }} [bounds] above 0 when `min` is omitted; `isInteger` excludes fractions
 */
export function readNumber(name, text, { min, isInteger = false } = {}) {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  const isInRange = min === undefined ? value > 0 : value >= min;
  if (Number.isFinite(value) && isInRange && (!isInteger || Number.isSafeInteger(value))) return value;
  const kind = isInteger ? 'a whole number' : 'a number';
  return rejectArguments(
    `${name} is "${text}", but must be ${kind} ${min === undefined ? 'above 0' : `of at least ${min}`}`,
  );
}
