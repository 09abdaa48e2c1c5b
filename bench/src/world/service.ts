import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort, readStartCommand } from '@runhook/embedded';

export interface ServiceProcess {
  pid: number;
  url: string;
  stop(): Promise<void>;
  /** Does not wait for attempts in flight. */
  kill(): Promise<void>;
}

export interface ServiceOptions {
  name: 'management' | 'dispatcher';
  environment: Record<string, string>;
  /** Folder for the service's output. */
  folder: string;
  /** The Node program that runs the service; default: the one that runs the benchmark. */
  node?: string;
  /** Flags of Node in addition to those of the service's start command. */
  nodeArguments?: readonly string[];
  onStarted: (pid: number) => void;
}

const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 50;

/**
 * Starts a built service with the start command of its package and its output in a file, and waits until it is ready.
 */
export async function startService(options: ServiceOptions): Promise<ServiceProcess> {
  const { name, environment, folder, node = process.execPath, nodeArguments = [], onStarted } = options;
  const { port } = await findFreePort();
  const logFile = join(folder, `${name}-${port}.log`);
  const log = openSync(logFile, 'a', 0o600);
  const command = readStartCommand(name);
  const program = fileURLToPath(new URL(`../../../${command.program}`, import.meta.url));
  const child = spawn(node, [...nodeArguments, ...command.nodeArguments, program], {
    env: {
      PATH: process.env.PATH,
      ...command.environment,
      ...environment,
      HOST: '127.0.0.1',
      PORT: String(port),
      OPERATIONS_PORT: '0',
    },
    stdio: ['ignore', log, log],
    // Ctrl-C must reach only the benchmark, so that everything is stopped in order.
    detached: true,
  });
  closeSync(log);
  const exited = once(child, 'exit');
  let hasExited = false;
  void exited.then(() => {
    hasExited = true;
  });
  const pid = child.pid as number;
  onStarted(pid);
  const url = `http://127.0.0.1:${port}`;
  for (const deadline = Date.now() + READY_TIMEOUT_MS; ; await wait(POLL_MS)) {
    const isReady = await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
    if (isReady) break;
    if (!hasExited && Date.now() < deadline) continue;
    child.kill('SIGKILL');
    throw new Error(`${name} did not become ready:\n${readFileSync(logFile, 'utf8').slice(-2_000)}`);
  }
  return {
    pid,
    url,
    async stop() {
      if (!hasExited) child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timer);
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
