import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const MESSAGE_CHARACTERS_MAX = 2_000;
/** The service stores the end of a log of more than a megabyte. */
const LOG_CHARACTERS_MAX = 1_000_000;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Result of a command. `failure` is null if it exited with 0, otherwise the end of its stderr. `log` is the end of its
 * output. `wasStopped` means that this runner was stopped, and the command with it.
 */
export interface CommandResult {
  exitCode: number;
  failure: string | null;
  log: string;
  wasStopped: boolean;
}

/** Runs a command with this process's input and output. A command that cannot be started counts as failed. */
export function runCommand([program, ...args]: [string, ...string[]]): Promise<CommandResult> {
  // The queue's URL may contain a password that the command must not see.
  const { QUEUE_URL: _, ...env } = process.env;
  const child = spawn(program, args, { env, stdio: ['inherit', 'pipe', 'pipe'] });
  let [stderr, log] = ['', ''];
  const append = (text: string) => {
    log = (log + text).slice(-LOG_CHARACTERS_MAX);
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text);
    append(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text);
    stderr = (stderr + text).slice(-2 * MESSAGE_CHARACTERS_MAX);
    append(text);
  });

  let wasStopped = false;
  const stop = (signal: NodeJS.Signals) => {
    wasStopped = true;
    child.kill(signal);
  };
  for (const signal of STOP_SIGNALS) process.on(signal, stop);

  return new Promise((resolve) => {
    child.once('error', (error) => {
      const failure = `${program} could not be started: ${error.message}`;
      resolve({ exitCode: 127, failure, log: failure, wasStopped });
    });
    // Waits for 'close' instead of 'exit', so that stderr has been read to its end.
    child.once('close', (code, signal) => {
      for (const name of STOP_SIGNALS) process.off(name, stop);
      const exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      const ending = signal === null ? `exit code ${exitCode}` : `ended by ${signal}`;
      const failure = exitCode === 0 ? null : lastCharacters(stderr) || ending;
      resolve({ exitCode, failure, log, wasStopped });
    });
  });
}

/**
 * Cuts by code points, because a cut by UTF-16 units may leave half of an emoji, which JSON of other languages must not
 * contain.
 */
function lastCharacters(text: string): string {
  return [...text].slice(-MESSAGE_CHARACTERS_MAX).join('').trim();
}
