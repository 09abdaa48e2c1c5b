import { Readable, Writable } from 'node:stream';
import { runCli } from '../src/program.ts';

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** A command that runs until it is stopped. */
export interface Running {
  /** Resolves with standard output once it matches the pattern. */
  said(pattern: RegExp): Promise<string>;
  /** Sends Ctrl-C. */
  stop(): Promise<Ran>;
  ended: Promise<Ran>;
}

/** Runs a command line within this process, with only the given environment. */
export function start(
  args: readonly string[],
  { env = {}, input = '' }: { env?: NodeJS.ProcessEnv; input?: string | Buffer } = {},
): Running {
  const output = { stdout: '', stderr: '' };
  const waiting: (() => void)[] = [];
  const collect = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        output[name] += chunk;
        for (const look of [...waiting]) look();
        done();
      },
    });
  const stopping = new AbortController();
  const ended = runCli(args, {
    env: { HOME: '/nonexistent', ...env },
    stdin: Readable.from([Buffer.from(input)]),
    stdout: collect('stdout'),
    stderr: collect('stderr'),
    untilStopped: () => stopping.signal,
  }).then((code) => ({ code, ...output }));
  return {
    ended,
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => (pattern.test(output.stdout) ? resolve(output.stdout) : undefined);
        waiting.push(look);
        look();
        void ended.then((ran) =>
          reject(new Error(`it ended before it said ${pattern}: ${JSON.stringify(ran)}`)),
        );
      }),
    stop() {
      stopping.abort();
      return ended;
    },
  };
}

export const run = (...given: Parameters<typeof start>): Promise<Ran> => start(...given).ended;
