import { readFileSync } from 'node:fs';

/** What a service is started with, beside its own settings. */
export interface StartCommand {
  environment: Record<string, string>;
  /** Node's flags. */
  nodeArguments: string[];
}

/**
 * From the start command of the service's own package, so that what is tried and measured here is what is run:
 * `NAME=value node <flags> dist/main.js`.
 */
export function startCommand(service: 'management' | 'dispatcher'): StartCommand {
  const manifest = new URL(`../../../services/${service}/package.json`, import.meta.url);
  const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as { scripts: { start: string } };
  const words = scripts.start.split(' ');
  const node = words.indexOf('node');
  return {
    environment: Object.fromEntries(words.slice(0, node).map((word) => word.split('=', 2))),
    nodeArguments: words.slice(node + 1, -1),
  };
}
