import type { Bench } from '../bench.ts';
import type { RunnersOptions } from '../world/runners.ts';

/** JIT is on in Debian's default settings. */
const JIT_OFF = { jit: 'off' };

/**
 * Runs the services on Debian's PostgreSQL 15 with its default settings, but without JIT unless `options` enable it.
 */
export function withDebianPostgres({ alternatives }: Bench, options: RunnersOptions = {}): RunnersOptions {
  const { debianPostgres: postgresPrograms } = alternatives;
  if (postgresPrograms === null)
    throw new Error('/usr/lib/postgresql has no PostgreSQL 15: install it (apt-get install postgresql)');
  return { ...options, postgresPrograms, postgresSettings: { ...JIT_OFF, ...options.postgresSettings } };
}
