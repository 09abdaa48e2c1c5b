import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const KEY_BYTES = 32;
const PASSWORD_BYTES = 24;
/** Other users may read the files; the mounts of the volume determine which containers can. */
const READ_ONLY_MODE = 0o444;

/**
 * Creates the secrets of a deployment on one host: the database's password, the URL with it, and the encryption keys.
 * Existing files are left unchanged, because the data cannot be read without them. Returns the names of the created
 * files.
 */
export function makeLocalSecrets(folder: string): string[] {
  const made: string[] = [];
  const password = keep('database/password', () => randomBytes(PASSWORD_BYTES).toString('base64url'));
  keep('database/url', () => `postgres://runhook:${password}@postgres:5432/runhook`);
  keep('service/encryption-keys', () => `local:${randomBytes(KEY_BYTES).toString('base64')}`);
  return made;

  function keep(name: string, make: () => string): string {
    const path = join(folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    try {
      writeFileSync(path, make(), { flag: 'wx', mode: READ_ONLY_MODE });
      made.push(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    return readFileSync(path, 'utf8');
  }
}

if (import.meta.filename === process.argv[1]) {
  const made = makeLocalSecrets(process.argv[2] ?? '/run/secrets');
  process.stdout.write(made.length > 0 ? `made ${made.join(', ')}\n` : 'the secrets are there\n');
}
