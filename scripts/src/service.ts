import { join } from 'node:path';
import { findFreePort } from '@runhook/embedded';
import { type Child, spawnChild } from './child.ts';
import type { Home } from './home.ts';
import type { PortChooser } from './ports.ts';
import { DiedEarly, untilReady } from './readiness.ts';
import type { RunningRecord } from './running-record.ts';

const HOST = '127.0.0.1';
const PORTS_TRIED_MAX = 5;

/** One of our own processes that serve HTTP, as it is started. */
export interface ServiceSpec {
  name: string;
  /** The program, relative to the checkout. */
  program: string;
  /** Of node, before the program. */
  nodeArguments?: readonly string[];
  preferredPort: number;
  /** Beside PORT and HOST. Asked at each start. */
  environment(): NodeJS.ProcessEnv;
  isReady(url: string): Promise<boolean> | boolean;
  onLine?(line: string): void;
  stopGraceMs: number;
}

export interface Service extends Child {
  port: number;
  /** `http://127.0.0.1:port` */
  url: string;
}

export interface ServiceSurroundings {
  checkout: string;
  home: Home;
  record: RunningRecord;
  choosePort: PortChooser;
  /** Told that the port it should have had is another's. */
  onSteppedOver(name: string, taken: number, port: number): void;
}

/**
 * Starts a service on a free port and waits until it is ready. Nothing reserves a port: when another process was
 * faster, it is started again on the next one.
 */
export async function startService(
  surroundings: ServiceSurroundings,
  spec: ServiceSpec,
  signal: AbortSignal,
): Promise<Service> {
  const { checkout, home, record, choosePort, onSteppedOver } = surroundings;
  const { name, program, nodeArguments = [], preferredPort, onLine, stopGraceMs } = spec;
  for (let tries = 1; ; tries += 1) {
    const port = await choosePort(name, preferredPort);
    if (preferredPort !== 0 && port !== preferredPort) onSteppedOver(name, preferredPort, port);
    signal.throwIfAborted();
    const url = `http://${HOST}:${port}`;
    const child = await spawnChild({
      name,
      args: [...nodeArguments, join(checkout, program)],
      cwd: checkout,
      env: { ...spec.environment(), PORT: String(port), HOST },
      logFile: join(home.logs, `${name}.log`),
      ...(onLine === undefined ? {} : { onLine }),
      record,
      stopGraceMs,
    });
    try {
      await untilReady(name, child, () => spec.isReady(url), signal);
      return { ...child, port, url };
    } catch (error) {
      await child.stop();
      const wasTaken = error instanceof DiedEarly && (await findFreePort(port)).wasTaken;
      if (!wasTaken || tries === PORTS_TRIED_MAX) throw error;
    }
  }
}
