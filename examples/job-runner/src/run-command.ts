import { spawn } from 'node:child_process';
import type { Command } from './jobs.ts';

const MESSAGE_CHARACTERS_MAX = 2_000;
const LOG_CHARACTERS_MAX = 500_000;

/** Result of a command. */
export interface CommandResult {
  /** Null if the command exited with 0; otherwise the end of its stderr. */
  failure: string | null;
  /** The end of its output. */
  logs: string;
}

/**
 * Runs a command with this process's output. A command that cannot be started counts as failed. When the signal is
 * aborted, the command is ended.
 */
export function runCommand(
  [program, ...args]: Command,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<CommandResult> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  let logs = '';
  const collect = (text: string) => {
    logs = (logs + text).slice(-LOG_CHARACTERS_MAX);
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text);
    collect(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text);
    collect(text);
    stderr = (stderr + text).slice(-2 * MESSAGE_CHARACTERS_MAX);
  });
  const stop = () => child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  if (signal.aborted) stop();

  return new Promise((resolve) => {
    child.once('error', (error) => {
      resolve({ failure: `${program} could not be started: ${error.message}`, logs });
    });
    // Waits for 'close' instead of 'exit', so that the output has been read to its end.
    child.once('close', (code, endSignal) => {
      signal.removeEventListener('abort', stop);
      const ending = endSignal === null ? `exit code ${code}` : `ended by ${endSignal}`;
      resolve({ failure: code === 0 ? null : lastCharacters(stderr) || ending, logs });
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
