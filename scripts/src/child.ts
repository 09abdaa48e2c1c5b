import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { withinDeadline } from '@runhook/runtime';
import type { RunningRecord } from './running-record.ts';

/** Something that runs until it is stopped, or dies. */
export interface Running {
  pid: number;
  /** Settles with how it ended, for people. Never rejects. */
  exited: Promise<string>;
  stop(): Promise<void>;
  /** SIGKILL, without waiting. */
  kill(): void;
}

export interface ChildOptions {
  name: string;
  /** Of node. */
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Gets what it writes, at the end of what is there. */
  logFile: string;
  /** Gets the lines of its standard output, which then are not in the log. */
  onLine?: (line: string) => void;
  record: RunningRecord;
  /** How long it may take to stop before it is killed. */
  stopGraceMs: number;
}

/** A node process that we started. */
export interface Child extends Running {
  hasExited(): boolean;
  /** 128 and more when a signal ended it. */
  exitCode: Promise<number>;
  lastLines(): string[];
}

const LAST_LINES = 8;

/**
 * Starts node in a process group of its own: Ctrl-C must reach only us, so that what runs is stopped in order; and
 * what it starts itself is stopped with it.
 */
export function spawnChild(options: ChildOptions): Promise<Child> {
  const { name, args, cwd, env, logFile, onLine, record, stopGraceMs } = options;
  mkdirSync(dirname(logFile), { recursive: true, mode: 0o700 });
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(process.execPath, args, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', onLine === undefined ? log : 'pipe', log],
  });
  closeSync(log);
  if (onLine !== undefined && child.stdout !== null)
    createInterface({ input: child.stdout }).on('line', onLine);

  let ended = false;
  const exit = new Promise<{ how: string; code: number }>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = true;
      if (child.pid === undefined) return;
      signalGroup(child.pid, 'SIGKILL');
      record.remove(child.pid);
      resolve(
        code === null ? { how: `was ended by ${signal}`, code: 128 } : { how: `ended with ${code}`, code },
      );
    });
  });
  const exited = exit.then(({ how }) => how);

  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => {
      const pid = child.pid as number;
      record.add(name, pid);
      resolve({
        pid,
        exited,
        exitCode: exit.then(({ code }) => code),
        hasExited: () => ended,
        lastLines: () => lastLogLines(logFile, LAST_LINES),
        kill: () => void signalGroup(pid, 'SIGKILL'),
        async stop() {
          if (!ended) signalGroup(pid, 'SIGTERM');
          await endsWithin(exited, stopGraceMs);
          if (!ended) signalGroup(pid, 'SIGKILL');
          await exited;
        },
      });
    });
  });
}

/** Resolves when it has ended, or when the grace is over. */
async function endsWithin(exited: Promise<unknown>, graceMs: number): Promise<void> {
  await withinDeadline(graceMs, () => exited).catch(() => undefined);
}

/** Sends a signal to a process that leads a group of its own, and to all it has started. False when nobody is left. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
    return true;
  } catch {
    return false;
  }
}

const OURS = ['DATABASE_URL', 'QUEUE_URL', 'ENCRYPTION_KEYS'];

/** What the environment has for a process that is an outsider: everything but the service's own secrets. */
export function outsidersEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OURS.includes(name)));
}

const TAIL_BYTES = 16_384;

/** The last lines of a log, as text for people: of a JSON line its message, and its error's. None when it is gone. */
export function lastLogLines(file: string, count: number): string[] {
  const lines = readTail(file)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.slice(-count).map(readable);
}

function readTail(file: string): string {
  if (!existsSync(file)) return '';
  const descriptor = openSync(file, 'r');
  try {
    const { size } = fstatSync(descriptor);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8');
  } finally {
    closeSync(descriptor);
  }
}

function readable(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line) as {
      level?: string;
      msg?: string;
      err?: { message?: string };
    };
    if (msg === undefined) return line;
    return [level, msg, err?.message].filter((part) => part !== undefined).join(': ');
  } catch {
    return line;
  }
}
