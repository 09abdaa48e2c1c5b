import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const DEBIAN_FOLDER = '/usr/lib/postgresql';
const OLDEST_SUPPORTED = 15;

/** Name of jest's project for the tests that run on it. */
export const SYSTEM_POSTGRES = "the system's PostgreSQL";

/** Explains why {@link findSystemPostgres} returned null. */
export const NO_SYSTEM_POSTGRES = `${DEBIAN_FOLDER} has no server of version ${OLDEST_SUPPORTED} or newer (apt-get install postgresql)`;

/**
 * Finds a PostgreSQL of the system's packages. Debian builds it with JIT, which is on by default, and its version is older than
 * npm's.
 *
 * @param {{ major?: string, folder?: string }} [options] `major`: this version only; the oldest one from 15 when omitted
 * @returns {{ folder: string, version: string, hasJit: boolean } | null} `folder` has bin/ and lib/
 */
export function findSystemPostgres({ major, folder = DEBIAN_FOLDER } = {}) {
  const versions = existsSync(folder) ? readdirSync(folder) : [];
  const usable = versions
    .filter((version) => Number(version) >= OLDEST_SUPPORTED && (major === undefined || version === major))
    .filter((version) =>
      ['postgres', 'initdb'].every((name) => existsSync(join(folder, version, 'bin', name))),
    )
    .sort((one, other) => Number(one) - Number(other));
  const [version] = usable;
  if (version === undefined) return null;
  const home = join(folder, version);
  return { folder: home, version, hasJit: existsSync(join(home, 'lib', 'llvmjit.so')) };
}
