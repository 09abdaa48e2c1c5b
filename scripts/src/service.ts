import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { findFreePort } from '@runhook/embedded';
import { type Child, spawnChild } from './child.ts';
import type { Home } from './home.ts';
import type { RunningRecord } from './running-record.ts';
import { StartFailed } from './settings.ts';

const HOST = '127.0.0.1';
const PORTS_TRIED_MAX = 5;

/** Describes how a process that serves HTTP is started. */
export interface ServiceSpec {
  name: string;
  /** Path of the program, relative to the checkout. */
  program: string;
  /** Arguments of node that precede the program. */
  nodeArguments?: readonly string[];
  preferredPort: number;
  /** Preferred OPERATIONS_PORT of a service that serves its metrics on a separate port. */
  operationsPort?: number;
  /** Returns the variables other than PORT, OPERATIONS_PORT and HOST. Called at each start. */
  environment(): NodeJS.ProcessEnv;
  isReady(url: string): Promise<boolean> | boolean;
  onLine?(line: string): void;
  stopGraceMs: number;
}

export interface Service extends Child {
  port: number;
  /** `http://127.0.0.1:port` */
  url: string;
  /** URL of the OPERATIONS_PORT of the service; null if it has none. */
  operationsUrl: string | null;
}

export interface ServiceContext {
  checkout: string;
  home: Home;
  record: RunningRecord;
  choosePort: PortChooser;
  /** Called if the preferred port is taken. */
  onPortTaken(name: string, taken: number, port: number): void;
}

/**
 * Starts a service on a free port and waits until it is ready. Ports are not reserved: if another process takes the port first, the
 * service is started again on the next one.
 */
export async function startService(
  context: ServiceContext,
  spec: ServiceSpec,
  signal: AbortSignal,
): Promise<Service> {
  const { checkout, home, record, choosePort, onPortTaken } = context;
  const { name, program, nodeArguments = [], preferredPort, onLine, stopGraceMs } = spec;
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort(name, preferredPort);
    if (preferredPort !== 0 && port !== preferredPort) onPortTaken(name, preferredPort, port);
    const operationsPort =
      spec.operationsPort && (await choosePort(`${name} operations`, spec.operationsPort));
    signal.throwIfAborted();
    const url = `http://${HOST}:${port}`;
    const child = await spawnChild({
      name,
      args: [...nodeArguments, join(checkout, program)],
      cwd: checkout,
      env: {
        ...spec.environment(),
        PORT: String(port),
        ...(operationsPort !== undefined && { OPERATIONS_PORT: String(operationsPort) }),
        HOST,
      },
      logFile: join(home.logs, `${name}.log`),
      ...(onLine === undefined ? {} : { onLine }),
      record,
      stopGraceMs,
    });
    try {
      await waitUntilReady(name, child, () => spec.isReady(url), signal);
      const operationsUrl = operationsPort === undefined ? null : `http://${HOST}:${operationsPort}`;
      return { ...child, port, url, operationsUrl };
    } catch (error) {
      await child.stop();
      const wasTaken = error instanceof ExitedEarly && (await areTaken([port, operationsPort]));
      if (!wasTaken || attempt === PORTS_TRIED_MAX) throw error;
    }
  }
}

async function areTaken(ports: readonly (number | undefined)[]): Promise<boolean> {
  for (const port of ports) if (port !== undefined && (await findFreePort(port)).wasTaken) return true;
  return false;
}

const POLL_MS = 50;
const RESPONSE_TIMEOUT_MS = 2_000;
const READY_TIMEOUT_MS = 60_000;

/** Reports a service that ended before it was ready. */
class ExitedEarly extends StartFailed {}

/** Polls until the service is ready. Throws if the child ends, is not ready within a minute, or the signal is aborted. */
async function waitUntilReady(
  name: string,
  child: Child,
  isReady: () => Promise<boolean> | boolean,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (true) {
    signal.throwIfAborted();
    const ready = await isReady();
    // Checked after the response, which may come from another process that holds the port and made this one fail.
    if (child.hasExited()) throw new ExitedEarly(formatFailure(name, await child.exited, child));
    if (ready) return;
    if (Date.now() > deadline)
      throw new StartFailed(formatFailure(name, 'was not ready within a minute', child));
    await wait(POLL_MS);
  }
}

/** Whether a GET gets a 2xx response. */
export async function isHealthy(url: string, headers: Record<string, string> = {}): Promise<boolean> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

function formatFailure(name: string, description: string, child: Child): string {
  return [`${name} ${description}`, ...child.lastLines().map((line) => `  ${line}`)].join('\n');
}

/** Steps of ten keep the ports of one checkout together: 3010, 3011, 3012. */
const PORT_STEP = 10;
const PORT_STEPS_MAX = 20;

/**
 * Chooses a port of 127.0.0.1 for a name: `preferred` if it is free, else one that is a multiple of ten higher, else any. Two names
 * never get the same port; a second call for a name may return the same one.
 */
export type PortChooser = (name: string, preferred: number) => Promise<number>;

export function createPortChooser(): PortChooser {
  const chosen = new Map<string, number>();
  return async (name, preferred) => {
    chosen.delete(name);
    const takenPorts = new Set(chosen.values());
    const port = (await findNextFree(preferred, takenPorts)) ?? (await findAnyFree(takenPorts));
    chosen.set(name, port);
    return port;
  };
}

async function findNextFree(preferred: number, takenPorts: ReadonlySet<number>): Promise<number | null> {
  if (preferred === 0) return null;
  for (
    let port = preferred;
    port <= Math.min(preferred + PORT_STEP * PORT_STEPS_MAX, 65_535);
    port += PORT_STEP
  ) {
    if (!takenPorts.has(port) && !(await findFreePort(port)).wasTaken) return port;
  }
  return null;
}

async function findAnyFree(takenPorts: ReadonlySet<number>): Promise<number> {
  while (true) {
    const { port } = await findFreePort();
    if (!takenPorts.has(port)) return port;
  }
}
