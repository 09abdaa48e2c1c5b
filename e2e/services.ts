import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readStartCommand } from '@runhook/embedded';
import { testEncryptionKeysText, withServiceLogin } from '@runhook/testing';

type ServiceName = 'management' | 'dispatcher';

/** A service as operators run it: a process with its settings in the environment. */
export interface RunningService {
  url: string;
  /** URL of the metrics of the service. */
  operationsUrl: string;
  pid: number;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** `dispatcher is working` is the message of releases before 0.2.0. */
const READY_MESSAGES = new Set(['management is listening', 'dispatcher started', 'dispatcher is working']);

const CHECKOUT = fileURLToPath(new URL('..', import.meta.url));

export interface ServiceOptions {
  /** Folder in which another release was built. */
  checkout?: string | undefined;
  /** Program and arguments that execute the service, such as `ip netns exec <name>`. */
  commandPrefix?: readonly string[] | undefined;
  /** Whether to use the flags and the environment of the start command, for measurements of memory. */
  asInProduction?: boolean | undefined;
}

/** Settings of services in tests, on free ports; those of a test take precedence. */
export const TEST_SETTINGS = {
  ENCRYPTION_KEYS: testEncryptionKeysText,
  EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  RETRY_BASE_DELAY_MS: '50',
  // Long enough that no endpoint of a test times out on a busy machine.
  DELIVERY_TIMEOUT_MS: '60000',
  HOST: '127.0.0.1',
  PORT: '0',
  OPERATIONS_PORT: '0',
};

/** Starts the built service on a free port. Resolves when it has logged that it is ready. */
export async function startService(
  name: ServiceName,
  environment: Record<string, string>,
  { checkout = CHECKOUT, commandPrefix = [], asInProduction = false }: ServiceOptions = {},
): Promise<RunningService> {
  const command = readStartCommand(name, checkout);
  const flags = asInProduction ? command.nodeArguments : [];
  const main = join(checkout, command.program);
  const [program = '', ...args] = [...commandPrefix, process.execPath, ...flags, main];
  const child = spawn(program, args, {
    env: {
      ...(asInProduction && { PATH: process.env.PATH, ...command.environment }),
      ...TEST_SETTINGS,
      ...withServiceLogin(name, environment),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  // A dispatcher has one port for everything, as did management in earlier releases.
  const { port, operationsPort = port } = await readyPorts(child, exited);
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await exited;
    return child.exitCode;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    operationsUrl: `http://127.0.0.1:${operationsPort}`,
    pid: child.pid ?? 0,
    kill: async () => void (await end('SIGKILL')),
    stop: () =>
      child.exitCode === null && child.signalCode === null ? end('SIGTERM') : Promise.resolve(child.exitCode),
  };
}

interface Ports {
  port: number;
  operationsPort?: number;
}

function readyPorts(child: ChildProcess, exited: Promise<unknown>): Promise<Ports> {
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess['stdout']> });
  return new Promise((resolve, reject) => {
    // For diagnosis: SERVICE_LOGS=<folder> stores the logs of services.
    const folder = process.env.SERVICE_LOGS;
    if (folder) mkdirSync(folder, { recursive: true });
    lines.on('line', (line) => {
      if (folder) appendFileSync(join(folder, `${child.pid}.log`), `${line}\n`);
      if (!line.startsWith('{')) return;
      const { msg, port, ...message } = JSON.parse(line) as Partial<Ports> & { msg?: string };
      if (port !== undefined && msg !== undefined && READY_MESSAGES.has(msg)) resolve({ ...message, port });
    });
    void exited.then(() => reject(new Error('the service ended before it was ready')));
  });
}
