import { collectDefaultMetrics, Registry } from 'prom-client';

/** A registry of its own with Node's metrics (event loop lag, heap, handles, CPU), each series labelled `service`. */
export function createMetricsRegistry({ service }: { service: string }): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
