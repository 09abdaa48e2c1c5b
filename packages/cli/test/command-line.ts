import { Readable, Writable } from 'node:stream';
import { runCli } from '../src/program.ts';

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** A command that runs until it is stopped. */
export interface RunningCommand {
  /** Resolves with standard output once it matches the pattern. */
  waitForOutput(pattern: RegExp): Promise<string>;
  /** Aborts the stop signal, as Ctrl-C does. */
  stop(): Promise<CommandResult>;
  result: Promise<CommandResult>;
}

/** Runs a command line within this process, with only the given environment. */
export function start(
  args: readonly string[],
  { env = {}, input = '' }: { env?: NodeJS.ProcessEnv; input?: string | Buffer } = {},
): RunningCommand {
  const output = { stdout: '', stderr: '' };
  const listeners: (() => void)[] = [];
  const collect = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        output[name] += chunk;
        for (const check of [...listeners]) check();
        done();
      },
    });
  const stopping = new AbortController();
  const result = runCli(args, {
    env: { HOME: '/nonexistent', ...env },
    stdin: Readable.from([Buffer.from(input)]),
    stdout: collect('stdout'),
    stderr: collect('stderr'),
    createStopSignal: () => stopping.signal,
  }).then((code) => ({ code, ...output }));
  return {
    result,
    waitForOutput: (pattern) =>
      new Promise((resolve, reject) => {
        const check = () => (pattern.test(output.stdout) ? resolve(output.stdout) : undefined);
        listeners.push(check);
        check();
        void result.then((ran) =>
          reject(new Error(`it ended before it said ${pattern}: ${JSON.stringify(ran)}`)),
        );
      }),
    stop() {
      stopping.abort();
      return result;
    },
  };
}

export const run = (...args: Parameters<typeof start>): Promise<CommandResult> => start(...args).result;
