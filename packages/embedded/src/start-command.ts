import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));

/** What a service is started with, beside its own settings. */
export interface StartCommand {
  environment: Record<string, string>;
  /** Node's flags. */
  nodeArguments: string[];
  /** Below the checkout, such as `services/dispatcher/dist/bundle.js`. */
  program: string;
}

/**
 * From the start command of the service's own package, so that what is tried and measured here is what is run:
 * `NAME=value node <flags> <program>`. Another release, in a checkout of its own, has its own.
 */
export function startCommand(service: 'management' | 'dispatcher', checkout = CHECKOUT): StartCommand {
  const manifest = join(checkout, 'services', service, 'package.json');
  const { scripts } = JSON.parse(readFileSync(manifest, 'utf8')) as { scripts: { start: string } };
  const words = scripts.start.split(' ');
  const node = words.indexOf('node');
  return {
    environment: Object.fromEntries(words.slice(0, node).map((word) => word.split('=', 2))),
    nodeArguments: words.slice(node + 1, -1),
    program: `services/${service}/${words.at(-1)}`,
  };
}
