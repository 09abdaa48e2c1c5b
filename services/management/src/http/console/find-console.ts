import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Where the built console is, or would be once it is built; null when its package is not installed. */
export function findConsole(): string | null {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('@runhook/console/package.json')), 'dist');
  } catch (error) {
    if ((error as { code?: unknown }).code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}
