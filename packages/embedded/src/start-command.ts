import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));

/** The start command of a service, without the service's settings. */
export interface StartCommand {
  environment: Record<string, string>;
  /** Flags of Node.js. */
  nodeArguments: string[];
  /** Path relative to the checkout, such as `services/dispatcher/dist/bundle.js`. */
  program: string;
}

/**
 * Parses the start command in the service's package.json (`NAME=value node <flags> <program>`), so that tests and
 * measurements run what production runs. A checkout of another release has its own command.
 */
export function readStartCommand(service: 'management' | 'dispatcher', checkout = CHECKOUT): StartCommand {
  const manifest = join(checkout, 'services', service, 'package.json');
  const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as { scripts: { start: string } };
  const parts = scripts.start.split(' ');
  const nodeIndex = parts.indexOf('node');
  return {
    environment: Object.fromEntries(parts.slice(0, nodeIndex).map((word) => word.split('=', 2))),
    nodeArguments: parts.slice(nodeIndex + 1, -1),
    program: `services/${service}/${parts.at(-1)}`,
  };
}
