import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '@runhook/embedded';

export interface ServiceProcess {
  pid: number;
  url: string;
  stop(): Promise<void>;
  /** Does not wait for what is in flight. */
  kill(): Promise<void>;
}

export interface ServiceOptions {
  name: 'management' | 'dispatcher';
  environment: Record<string, string>;
  /** For its output. */
  folder: string;
  /** Of node, beside those of the service's start command. */
  nodeArguments?: readonly string[];
  onStarted: (pid: number) => void;
}

const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 50;

/** Starts a built service as its package's start command does, with its output in a file, and waits until it is ready. */
export async function startService(options: ServiceOptions): Promise<ServiceProcess> {
  const { name, environment, folder, nodeArguments = [], onStarted } = options;
  const { port } = await findFreePort();
  const logFile = join(folder, `${name}-${port}.log`);
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(process.execPath, [...nodeArguments, ...startArguments(name)], {
    env: {
      PATH: process.env.PATH,
      ...environment,
      HOST: '127.0.0.1',
      PORT: String(port),
      OPERATIONS_PORT: '0',
    },
    stdio: ['ignore', log, log],
    // Ctrl-C must reach only us, so that everything is stopped in order.
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

/** From the service's own package.json, so that what is measured is what is run: `node <flags> dist/main.js`. */
function startArguments(name: ServiceOptions['name']): string[] {
  const program = new URL(`../../../services/${name}/dist/main.js`, import.meta.url);
  return [...startFlags(name), fileURLToPath(program)];
}

/** Node's, of the service's start command. */
export function startFlags(name: ServiceOptions['name']): string[] {
  const manifest = new URL(`../../../services/${name}/package.json`, import.meta.url);
  const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as { scripts: { start: string } };
  return scripts.start.split(' ').slice(1, -1);
}
