import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { ServerFailed } from './server-failed.ts';

const LOG_LINES_KEPT = 30;

/** One rung of an ordered stop: send the signal, then give the process that long. */
export interface StopStep {
  signal: NodeJS.Signals;
  graceMs: number;
}

/** What a server is started with. `uid` and `gid` only when it must run as another account. */
export interface ServerCommand {
  file: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  onLog?: (line: string) => void;
}

/** A running child that is a server. */
export interface ServerProcess {
  pid: number;
  /** Settles with the exit code, or null when a signal ended it. Never rejects. */
  exited: Promise<number | null>;
  hasExited(): boolean;
  lastLogLines(): string[];
  /** Walks the steps until the process is gone; SIGKILL is the last one in any case. */
  stop(steps: readonly StopStep[]): Promise<void>;
}

/**
 * Starts the server in a session of its own: the terminal's Ctrl-C must not reach it, or the database would be gone
 * before the services that are still finishing their work.
 */
export async function spawnServer(command: ServerCommand): Promise<ServerProcess> {
  const { file, args, cwd, env, uid, gid, onLog } = command;
  const child = spawn(file, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  const logLines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      logLines.push(line);
      if (logLines.length > LOG_LINES_KEPT) logLines.shift();
      onLog?.(line);
    });
  }
  let ended = false;
  // 'close' and not 'exit': the last log lines have then been read.
  const closed = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      ended = true;
      // A grandchild may keep the pipes open after the server is gone.
      void Promise.race([closed, wait(500)]).then(() => resolve(code));
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.on('error', (error) =>
      reject(new ServerFailed('not-started', `cannot start ${file}: ${error.message}`)),
    );
  });
  const pid = child.pid as number;

  return {
    pid,
    exited,
    hasExited: () => ended,
    lastLogLines: () => [...logLines],
    async stop(steps) {
      for (const { signal, graceMs } of steps) {
        if (ended) break;
        child.kill(signal);
        await endsWithin(exited, graceMs);
      }
      if (!ended) child.kill('SIGKILL');
      await exited;
    },
  };
}

async function endsWithin(exited: Promise<unknown>, graceMs: number): Promise<void> {
  const timer = new AbortController();
  const timeout = wait(graceMs, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([exited, timeout]);
  timer.abort();
}
