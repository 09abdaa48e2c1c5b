import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { withinDeadline } from '@runhook/runtime';
import type { RunningRecord } from './running-record.ts';

/** A process that runs until it is stopped or dies. */
export interface RunningProcess {
  pid: number;
  /** Resolves with a phrase that describes how the process ended. Never rejects. */
  exited: Promise<string>;
  stop(): Promise<void>;
  /** Sends SIGKILL and does not wait. */
  kill(): void;
}

export interface ChildOptions {
  name: string;
  /** Arguments of node. */
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** The output of the process is appended to this file. */
  logFile: string;
  /** Called for each line of standard output, which is then not logged. */
  onLine?: (line: string) => void;
  record: RunningRecord;
  /** Time until the process is killed after SIGTERM, in milliseconds. */
  stopGraceMs: number;
}

/** A node process that this program started. */
export interface Child extends RunningProcess {
  hasExited(): boolean;
  /** 128 if a signal ended the process. */
  exitCode: Promise<number>;
  lastLines(): string[];
}

const LAST_LINES = 8;

/**
 * Starts node in a separate process group. Ctrl-C reaches only this process, which then stops its children in order, and the
 * processes that a child starts are stopped with it.
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
  const exit = new Promise<{ description: string; code: number }>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = true;
      if (child.pid === undefined) return;
      signalGroup(child.pid, 'SIGKILL');
      record.remove(child.pid);
      resolve(
        code === null
          ? { description: `was ended by ${signal}`, code: 128 }
          : { description: `ended with ${code}`, code },
      );
    });
  });
  const exited = exit.then(({ description }) => description);

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
          await waitAtMost(exited, stopGraceMs);
          if (!ended) signalGroup(pid, 'SIGKILL');
          await exited;
        },
      });
    });
  });
}

/** Resolves when the process has ended, or after the grace period. */
async function waitAtMost(exited: Promise<unknown>, graceMs: number): Promise<void> {
  await withinDeadline(graceMs, () => exited).catch(() => undefined);
}

/** Sends a signal to the process group of `pid`. Returns false if the group has no process. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
    return true;
  } catch {
    return false;
  }
}

const SERVICE_VARIABLES = ['DATABASE_URL', 'QUEUE_URL', 'ENCRYPTION_KEYS'];

/** Returns the environment for a process that is not part of the service: all variables but the service's secrets. */
export function externalEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !SERVICE_VARIABLES.includes(name)),
  );
}

const TAIL_BYTES = 16_384;

/** Returns the last lines of a log for people: the messages of JSON lines, and other lines as they are. Empty if the file is missing. */
export function lastLogLines(file: string, count: number): string[] {
  const lines = readTail(file)
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.slice(-count).map(formatLogLine);
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

function formatLogLine(line: string): string {
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
