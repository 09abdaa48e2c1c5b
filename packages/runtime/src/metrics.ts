import { readFileSync } from 'node:fs';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/**
 * Returns the version of the running release. A test ensures that all packages have the version of the root
 * `package.json`.
 */
export function releaseVersion(): string {
  // Reads the file of this package, or of the service whose bundle contains this code; images do not include the
  // root's.
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return version;
}

/**
 * Creates a registry with Node's metrics (event loop lag, heap, handles, CPU) and the build; each series is labelled
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
    help: 'Always 1; the labels name the release and the version of Node.',
    labelNames: ['version', 'node_version'] as const,
    registers: [registry],
  }).set({ version, node_version: process.versions.node }, 1);
  return registry;
}

export interface MetricsRegistryOptions {
  service: string;
  /** Default: {@link releaseVersion}. */
  version?: string;
}

/** The counts of a `pg.Pool`, read at each scrape. */
export interface PoolStats {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly options: { readonly max?: number };
}

export function registerPoolMetrics(registry: Registry, pool: PoolStats): void {
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

/** Reports whether a service reaches its dependencies, as of the last measurement. */
export interface DependencyMetrics {
  /** Sets the gauge to 1 or 0, by name: `database`, `queue`. A measurement without a result must not call this. */
  note(dependency: 'database' | 'queue', isUp: boolean): void;
}

export function registerDependencyMetrics(registry: Registry): DependencyMetrics {
  const up = new Gauge({
    name: 'runhook_dependency_up',
    help: 'Whether the database and the queue responded to the last check of this process.',
    labelNames: ['dependency'] as const,
    registers: [registry],
  });
  return { note: (dependency, isUp) => up.set({ dependency }, isUp ? 1 : 0) };
}

/** Registers the offset between the clocks of this host and the server, as of the last measurement. */
export function registerClockMetrics(registry: Registry, clock: { readonly offsetMs: number }): void {
  new Gauge({
    name: 'runhook_clock_offset_seconds',
    help: 'Clock of this host minus that of PostgreSQL.',
    registers: [registry],
    collect() {
      this.set(clock.offsetMs / 1_000);
    },
  });
}

/** Registers the counter of quarantined items. Each item counts once, however often it is rejected. */
export function registerQuarantined(registers: Registry[]): Counter<'kind'> {
  return new Counter({
    name: 'runhook_quarantined_total',
    help: 'Items set aside because a store rejects their data or their id, by kind.',
    labelNames: ['kind'] as const,
    registers,
  });
}

/**
 * Registers the counter of requests that the egress guard rejected, e.g. for a URL that leads to an internal address.
 */
export function registerBlockedAddresses(registry: Registry): Counter {
  return new Counter({
    name: 'runhook_blocked_addresses_total',
    help: 'Requests that were not sent because their address or port is not allowed.',
    registers: [registry],
  });
}
