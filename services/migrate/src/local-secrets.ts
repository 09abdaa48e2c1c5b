import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const KEY_BYTES = 32;
const PASSWORD_BYTES = 24;
/**
 * Mode of the files, which other users may read, because the users of containers differ: the mounts of the volume
 * determine which containers have a file.
 */
const READ_ONLY_MODE = 0o444;

/**
 * Creates the secrets of a deployment on one host: the password of the database's superuser, the URLs of the superuser and
 * of the services' roles, and an encryption key. Existing files are left unchanged, because the data cannot be read without them. Returns the names of the created
 * files.
 */
export function createLocalSecrets(folder: string): string[] {
  const created: string[] = [];
  const createPassword = () => randomBytes(PASSWORD_BYTES).toString('base64url');
  const urlOf = (role: string, password: string) => `postgres://${role}:${password}@postgres:5432/runhook`;
  const password = ensureFile('database/password', createPassword);
  ensureFile('database/url', () => urlOf('runhook', password));
  for (const service of ['management', 'dispatcher'])
    ensureFile(`${service}/url`, () => urlOf(`runhook_${service}`, createPassword()));
  ensureFile('service/encryption-keys', () => `local:${randomBytes(KEY_BYTES).toString('base64')}`);
  return created;

  function ensureFile(name: string, make: () => string): string {
    const path = join(folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    try {
      writeFileSync(path, make(), { flag: 'wx', mode: READ_ONLY_MODE });
      created.push(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    return readFileSync(path, 'utf8');
  }
}

if (import.meta.filename === process.argv[1]) {
  const created = createLocalSecrets(process.argv[2] ?? '/run/secrets');
  process.stdout.write(created.length > 0 ? `created ${created.join(', ')}\n` : 'all secrets exist\n');
}
