import { readFileSync } from 'node:fs';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** The release that runs here. The version of all packages is that of the root `package.json`, which a test holds. */
export function releaseVersion(): string {
  // Of this package, or of the service whose bundle this is in: the root's does not come along into an image.
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return version;
}

/**
 * A registry of its own with Node's metrics (event loop lag, heap, handles, CPU) and the build, each series labelled
 * `service`.
 */
export function createMetricsRegistry({
  service,
  version = releaseVersion(),
}: MetricsRegistryOptions): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'runhook_build_info',
    help: 'Always 1; what runs here is in the labels.',
    labelNames: ['version', 'node_version'] as const,
    registers: [registry],
  }).set({ version, node_version: process.versions.node }, 1);
  return registry;
}

export interface MetricsRegistryOptions {
  service: string;
  /** {@link releaseVersion} when omitted. */
  version?: string;
}

/** The numbers of a `pg.Pool`, read when the metrics are. */
export interface PoolNumbers {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly options: { readonly max?: number };
}

export function registerPoolMetrics(registry: Registry, pool: PoolNumbers): void {
  const registers = [registry];
  new Gauge({
    name: 'runhook_database_connections',
    help: 'The pool of connections to PostgreSQL: total and idle connections, and callers waiting for one.',
    labelNames: ['state'] as const,
    registers,
    collect() {
      this.set({ state: 'total' }, pool.totalCount);
      this.set({ state: 'idle' }, pool.idleCount);
      this.set({ state: 'waiting' }, pool.waitingCount);
    },
  });
  new Gauge({
    name: 'runhook_database_connections_max',
    help: 'Connections that the pool may open.',
    registers,
  }).set(pool.options.max ?? 10);
}

/** Whether a service reaches what it depends on, as it was measured last. */
export interface DependencyMetrics {
  /** 1 or 0, by name: `database`, `queue`. A measurement that says nothing about it must not call this. */
  note(dependency: 'database' | 'queue', isUp: boolean): void;
}

export function registerDependencyMetrics(registry: Registry): DependencyMetrics {
  const up = new Gauge({
    name: 'runhook_dependency_up',
    help: 'Whether the database and the queue answered this process when it asked last.',
    labelNames: ['dependency'] as const,
    registers: [registry],
  });
  return { note: (dependency, isUp) => up.set({ dependency }, isUp ? 1 : 0) };
}

/** How far the clock of this process's host is from the server's, as it was measured last. */
export function registerClockMetrics(registry: Registry, clock: { readonly offsetMs: number }): void {
  new Gauge({
    name: 'runhook_clock_offset_seconds',
    help: 'How far the clock of this host is ahead of that of PostgreSQL; negative when it is behind.',
    registers: [registry],
    collect() {
      this.set(clock.offsetMs / 1_000);
    },
  });
}

/** Counts each item once, however often it is rejected. */
export function registerQuarantined(registers: Registry[]): Counter<'kind'> {
  return new Counter({
    name: 'runhook_quarantined_total',
    help: 'Items that were set aside because a store rejects their data or their id rules out that they are recorded, by kind.',
    labelNames: ['kind'] as const,
    registers,
  });
}

/** Requests that the egress guard refused: somebody subscribed with a URL that leads inside. */
export function registerBlockedAddresses(registry: Registry): Counter {
  return new Counter({
    name: 'runhook_blocked_addresses_total',
    help: 'Requests that were not sent because their address or port is not allowed.',
    registers: [registry],
  });
}
